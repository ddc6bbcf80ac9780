#include "net/turns.h"

#include <ctime>
#include <thread>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include "net/asio_loop.h"

namespace tocsin::net {
namespace {

constexpr Millis kTooLong = Turns::kLong + Millis(1);

std::chrono::nanoseconds CpuTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// Takes so much CPU time, and at least as much time.
void Compute(Millis time) {
  const auto end = CpuTime() + time;
  while (CpuTime() < end) {
  }
}

/// Takes so much time, and hardly any CPU time of this thread.
void Wait(Millis time) {
  std::jthread([end = std::chrono::steady_clock::now() + time] {
    while (std::chrono::steady_clock::now() < end) {
    }
  }).join();
}

class TurnsTest : public testing::Test {
 protected:
  void Poll() {
    const Turns::Measuring measuring(turns_);
    loop_.io().poll();
  }
  double Longest() { return metrics_.GetGauge("tocsin_shard_turn_seconds_max", "", {{"shard", "7"}})->Value(); }
  double LongestCpu() { return metrics_.GetGauge("tocsin_shard_turn_cpu_seconds_max", "", {{"shard", "7"}})->Value(); }
  uint64_t Long(const std::string& cause) {
    return metrics_.GetCounter("tocsin_shard_long_turns_total", "", {{"shard", "7"}, {"cause", cause}})->Value();
  }

  const RealClock clock_;
  AsioLoop loop_{clock_};
  metrics::Registry metrics_;
  Turns turns_{metrics_, 7};
};

TEST_F(TurnsTest, ALongTaskIsCounted) {
  loop_.Post([] { Compute(kTooLong); });
  Poll();
  EXPECT_GE(Longest(), 0.006);
  EXPECT_GE(LongestCpu(), 0.006);
  EXPECT_EQ(Long("cpu"), 1U);
  EXPECT_EQ(Long("wait"), 0U);
}

TEST_F(TurnsTest, ATaskThatWaitsIsToldFromOneThatComputes) {
  loop_.Post([] { Wait(kTooLong); });
  Poll();
  EXPECT_GE(Longest(), 0.006);
  EXPECT_LT(LongestCpu(), 0.005);
  EXPECT_EQ(Long("cpu"), 0U);
  EXPECT_EQ(Long("wait"), 1U);
}

TEST_F(TurnsTest, AnAlarmIsATurn) {
  bool rang = false;
  loop_.OnAlarm([&] {
    Compute(kTooLong);
    rang = true;
  });
  loop_.SetAlarm(Millis(0));
  while (!rang) Poll();
  EXPECT_EQ(Long("cpu"), 1U);
}

TEST_F(TurnsTest, ManyShortTasksAreNoLongTurn) {
  for (int i = 0; i < 20; ++i) loop_.Post([] { Compute(Millis(1)); });
  Poll();
  EXPECT_GE(Longest(), 0.001);
  EXPECT_EQ(Long("cpu"), 0U);
}

TEST_F(TurnsTest, ALongTaskBehindOthersIsCounted) {
  loop_.Post([] { Compute(Millis(2)); });  // the others run in another go
  loop_.Post([] { Compute(kTooLong); });
  Poll();
  EXPECT_EQ(Long("cpu"), 1U);
}

TEST_F(TurnsTest, WhatOtherTurnsComputedDoesNotCount) {
  for (int i = 0; i < 10; ++i) {
    boost::asio::post(loop_.io(), [] {
      const Turn turn;
      Compute(Millis(2));
    });
  }
  loop_.Post([] { Wait(kTooLong); });
  Poll();
  EXPECT_EQ(Long("cpu"), 0U);
  EXPECT_GE(Long("wait"), 1U);
}

TEST_F(TurnsTest, ATurnWithinAnotherIsAPartOfIt) {
  boost::asio::post(loop_.io(), AsTurn([] {
                      for (int i = 0; i < 3; ++i) {
                        const Turn part;
                        Compute(Millis(2));
                      }
                    }));
  Poll();
  EXPECT_GE(Longest(), 0.006);
  EXPECT_EQ(Long("cpu"), 1U);
}

TEST_F(TurnsTest, OtherThreadsAreNotMeasured) {
  loop_.Post([] { Compute(kTooLong); });
  loop_.io().poll();
  EXPECT_EQ(Longest(), 0);
}

}  // namespace
}  // namespace tocsin::net
