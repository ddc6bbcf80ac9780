#include "sim/manual_loop.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(ManualLoop, RunsTasksInOrderWithWhatTheyPost) {
  ManualLoop loop;
  std::vector<int> ran;
  loop.Post([&] {
    ran.push_back(1);
    loop.Post([&] { ran.push_back(3); });
  });
  loop.Post([&] { ran.push_back(2); });
  EXPECT_TRUE(loop.RunOne());
  EXPECT_THAT(ran, testing::ElementsAre(1));
  EXPECT_EQ(loop.Waiting(), 2U);
  EXPECT_EQ(loop.RunAll(), 2U);
  EXPECT_THAT(ran, testing::ElementsAre(1, 2, 3));
  EXPECT_FALSE(loop.RunOne());
}

TEST(ManualLoop, TheMailboxIsBoundedForRequestsAlone) {
  ManualLoop loop;
  loop.SetCapacity(1);
  EXPECT_TRUE(loop.TryPost([] {}));
  EXPECT_FALSE(loop.TryPost([] {}));
  loop.Post([] {});
  EXPECT_EQ(loop.RunAll(), 2U);
}

TEST(ManualLoop, TheLastAlarmCountsAndFiresOnce) {
  ManualLoop loop;
  int fired = 0;
  loop.OnAlarm([&] {
    if (++fired == 1) loop.SetAlarm(Millis(7));
  });
  EXPECT_FALSE(loop.FireAlarm());
  loop.SetAlarm(Millis(5));
  loop.SetAlarm(Millis(6));
  EXPECT_EQ(loop.AlarmDelay(), Millis(6));
  EXPECT_TRUE(loop.FireAlarm());
  EXPECT_EQ(loop.AlarmDelay(), Millis(7)) << "set by the handler itself";
  EXPECT_TRUE(loop.FireAlarm());
  EXPECT_FALSE(loop.FireAlarm());
  EXPECT_EQ(fired, 2);
}

TEST(ManualLoop, BelongsToTheThreadThatMadeIt) {
  ManualLoop loop;
  EXPECT_TRUE(loop.InThread());
  std::jthread([&] { EXPECT_FALSE(loop.InThread()); }).join();
}

}  // namespace
}  // namespace tocsin
