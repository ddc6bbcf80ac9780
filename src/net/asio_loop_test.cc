#include "net/asio_loop.h"

#include <future>
#include <latch>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace tocsin::net {
namespace {

class AsioLoopTest : public testing::Test {
 protected:
  void Start() {
    thread_ = std::thread([this] { loop_.Run(); });
  }
  void TearDown() override {
    loop_.Stop();
    if (thread_.joinable()) thread_.join();
  }
  /// Everything posted before has run.
  void Flush() {
    std::promise<void> done;
    loop_.Post([&] { done.set_value(); });
    done.get_future().wait();
  }

  RealClock clock_;
  AsioLoop loop_{clock_, 4};
  std::thread thread_;
};

TEST_F(AsioLoopTest, RunsTasksOfEachThreadInTheirOrder) {
  Start();
  constexpr int kThreads = 4;
  constexpr int kTasks = 5'000;
  std::vector<std::vector<int>> seen(kThreads);
  std::vector<std::thread> posters;
  for (int t = 0; t < kThreads; ++t) {
    posters.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) loop_.Post([&seen, t, i] { seen[static_cast<size_t>(t)].push_back(i); });
    });
  }
  for (auto& poster : posters) poster.join();
  Flush();
  for (const auto& one : seen) {
    ASSERT_EQ(one.size(), kTasks);
    EXPECT_TRUE(std::ranges::is_sorted(one));
  }
}

TEST_F(AsioLoopTest, RefusesRequestsOverTheLimitAndTakesThemAgainLater) {
  int ran = 0;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(loop_.TryPost([&] { ++ran; }));
  EXPECT_FALSE(loop_.TryPost([&] { ran = 1'000; }));
  loop_.Post([&] { ++ran; });  // replies are never refused
  Start();
  Flush();
  EXPECT_EQ(ran, 5);
  EXPECT_TRUE(loop_.TryPost([] {}));
}

TEST_F(AsioLoopTest, KnowsItsThread) {
  Start();
  EXPECT_FALSE(loop_.InThread());
  bool inside = false;
  loop_.Post([&] { inside = loop_.InThread(); });
  Flush();
  EXPECT_TRUE(inside);
}

TEST_F(AsioLoopTest, TheLastAlarmCounts) {
  Start();
  std::promise<std::chrono::steady_clock::time_point> rang;
  std::atomic<int> count = 0;
  const auto begin = clock_.IoNow();
  loop_.Post([&] {
    loop_.OnAlarm([&] {
      if (++count == 1) rang.set_value(clock_.IoNow());
    });
    loop_.SetAlarm(Millis(3'600'000));
    loop_.SetAlarm(Millis(1));   // earlier
    loop_.SetAlarm(Millis(30));  // later than the timer that is armed
  });
  const auto at = rang.get_future().get();
  EXPECT_GE(at - begin, Millis(30));
  EXPECT_LT(at - begin, Millis(5'000));
  Flush();
  EXPECT_EQ(count, 1);
}

TEST_F(AsioLoopTest, TheAlarmHandlerCanSetTheNextAlarm) {
  Start();
  std::latch rings(3);
  std::atomic<int> left = 3;
  loop_.Post([&] {
    loop_.OnAlarm([&] {
      if (--left > 0) loop_.SetAlarm(Millis(1));
      rings.count_down();
    });
    loop_.SetAlarm(Millis(0));
  });
  rings.wait();
  EXPECT_EQ(left, 0);
}

TEST_F(AsioLoopTest, OtherHandlersRunBetweenTasksThatTakeLong) {
  constexpr int kTasks = 5;
  int ran = 0;
  int ran_before = kTasks;
  loop_.Post([&] { boost::asio::post(loop_.io(), [&] { ran_before = ran; }); });
  for (int i = 0; i < kTasks; ++i) {
    loop_.Post([&] {
      const auto end = clock_.IoNow() + Millis(2);
      while (clock_.IoNow() < end) {
      }
      ++ran;
    });
  }
  Start();
  Flush();
  EXPECT_EQ(ran, kTasks);
  EXPECT_LT(ran_before, kTasks);
}

TEST_F(AsioLoopTest, OtherHandlersKeepTheirTurnsWhileTasksComeWithoutEnd) {
  constexpr int kTasks = 60;
  int ran = 0;
  int ran_before = 0;
  int most_between = 0;
  std::latch ended(1);
  std::function<void()> task = [&] {
    const auto end = clock_.IoNow() + Millis(2);
    while (clock_.IoNow() < end) {
    }
    if (++ran < kTasks) loop_.Post([&] { task(); });
  };
  std::function<void()> other = [&] {
    most_between = std::max(most_between, ran - std::exchange(ran_before, ran));
    if (ran >= kTasks) return ended.count_down();
    boost::asio::post(loop_.io(), [&] { other(); });
  };
  for (int i = 0; i < 20; ++i) loop_.Post([&] { task(); });  // so that some always wait
  boost::asio::post(loop_.io(), [&] { other(); });
  Start();
  ended.wait();
  EXPECT_LE(most_between, 2);
  Flush();
}

TEST_F(AsioLoopTest, ManyThreadsPostWhileItDrains) {
  Start();
  constexpr int kThreads = 3;
  constexpr int kTasks = 20'000;
  std::latch ran(kThreads * kTasks);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int task = 0; task < kTasks; ++task) loop_.Post([&] { ran.count_down(); });
    });
  }
  ran.wait();
}

TEST_F(AsioLoopTest, DropsWhatNeverRan) {
  auto witness = std::make_shared<int>(1);
  {
    AsioLoop never_run(clock_);
    never_run.Post([witness] {});
    EXPECT_EQ(witness.use_count(), 2);
  }
  EXPECT_EQ(witness.use_count(), 1);
}

}  // namespace
}  // namespace tocsin::net
