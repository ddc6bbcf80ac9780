#include "clients/redis/alarm.h"

#include <gtest/gtest.h>

namespace tocsin::redis {
namespace {

using std::chrono::milliseconds;

TimePoint In(int ms) { return std::chrono::steady_clock::now() + milliseconds(ms); }

TEST(Alarm, RingsOnceAtTheTimeThatWasSetLast) {
  boost::asio::io_context io;
  std::vector<TimePoint> rang;
  Alarm alarm(io, [&] { rang.push_back(std::chrono::steady_clock::now()); });
  alarm.Set(In(60'000));
  alarm.Set(In(1));
  const TimePoint last = In(20);
  alarm.Set(last);
  alarm.SetEarlier(In(40));
  io.run();
  ASSERT_EQ(rang.size(), 1);
  EXPECT_GE(rang[0], last);
}

TEST(Alarm, CanBeSetByItsOwnTask) {
  boost::asio::io_context io;
  int rings = 0;
  Alarm alarm(io, [&] {
    if (++rings < 3) alarm.Set(In(0));
  });
  alarm.Set(In(0));
  io.run();
  EXPECT_EQ(rings, 3);
}

TEST(Alarm, IsSilentAfterCancelAndAfterItsEnd) {
  boost::asio::io_context io;
  int rings = 0;
  Alarm cancelled(io, [&] { ++rings; });
  auto gone = std::make_unique<Alarm>(io, [&] { ++rings; });
  cancelled.Set(In(0));
  gone->Set(In(0));
  cancelled.Cancel();
  gone.reset();
  io.run();
  EXPECT_EQ(rings, 0);
}

TEST(Alarm, MayEndWithinItsOwnTask) {
  boost::asio::io_context io;
  std::string witness = "not run";
  auto alarm = std::make_unique<Alarm>(io, [] {});
  alarm = std::make_unique<Alarm>(io, [&, text = std::string(100, 'x')] {
    alarm.reset();
    witness = text;  // what the task holds is still there
  });
  alarm->Set(In(0));
  io.run();
  EXPECT_EQ(witness, std::string(100, 'x'));
}

TEST(Soon, RunsOnceForAllCallsOfATurnAndNeverWithinThem) {
  boost::asio::io_context io;
  int runs = 0;
  Soon soon(io, [&] { ++runs; });
  soon.Schedule();
  soon.Schedule();
  EXPECT_EQ(runs, 0);
  io.run();
  EXPECT_EQ(runs, 1);
  soon.Schedule();
  io.restart();
  io.run();
  EXPECT_EQ(runs, 2);
}

TEST(Soon, IsSilentAfterItsEnd) {
  boost::asio::io_context io;
  int runs = 0;
  auto soon = std::make_unique<Soon>(io, [&] { ++runs; });
  soon->Schedule();
  soon.reset();
  io.run();
  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace tocsin::redis
