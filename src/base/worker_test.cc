#include "base/worker.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <vector>

#include <gtest/gtest.h>

#include "sim/manual_loop.h"

namespace tocsin {
namespace {

TEST(Worker, DoesItsWorkInOrderAndElsewhereAndAnswersOnTheLoop) {
  ManualLoop loop;
  Worker worker("worker");
  constexpr int kWorks = 1'000;
  std::vector<int> worked(kWorks);  // each element is read only once its work is done
  int next = 0;
  std::vector<int> done;
  std::atomic<bool> elsewhere = true;
  for (int i = 0; i < kWorks; ++i) {
    worker.Run(
        loop,
        [&, i] {
          if (loop.InThread()) elsewhere = false;
          worked[static_cast<size_t>(i)] = next++;
        },
        [&, i](const Status& status) {
          EXPECT_TRUE(status);
          EXPECT_TRUE(loop.InThread());
          EXPECT_EQ(worked[static_cast<size_t>(i)], i);
          done.push_back(i);
        });
  }
  while (done.size() < kWorks) {
    if (!loop.RunOne()) std::this_thread::yield();
  }
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_TRUE(elsewhere);
}

TEST(Worker, WorkThatGivesMemoryBackComesFirst) {
  ManualLoop loop;
  Worker worker("worker");
  std::latch begin(1);
  std::string order;  // only the worker's thread appends to it until all are done
  int done = 0;
  const auto count = [&](const Status& status) {
    EXPECT_TRUE(status);
    ++done;
  };
  worker.Run(loop, [&] { begin.wait(); }, count);
  worker.Run(loop, [&] { order += 'a'; }, count);
  worker.RunFirst(loop, [&] { order += 'b'; }, count);
  begin.count_down();
  while (done < 3) {
    if (!loop.RunOne()) std::this_thread::yield();
  }
  EXPECT_EQ(order, "ba");
}

TEST(Worker, WorkInStepsTakesTurns) {
  ManualLoop loop;
  Worker worker("worker");
  std::latch begin(1);
  std::string order;  // of steps; only the worker's thread appends to it until all are done
  int done = 0;
  const auto steps = [&](char name, int count) {
    worker.RunSteps(
        loop,
        [&order, name, left = count]() mutable {
          order += name;
          return --left == 0;
        },
        [&](const Status& status) {
          EXPECT_TRUE(status);
          ++done;
        });
  };
  worker.Run(loop, [&] { begin.wait(); }, [&](const Status&) { ++done; });
  steps('a', 4);
  steps('b', 2);
  worker.Run(loop, [&] { order += 'c'; }, [&](const Status&) { ++done; });
  begin.count_down();
  while (done < 4) {
    if (!loop.RunOne()) std::this_thread::yield();
  }
  EXPECT_EQ(order, "abcabaa");
}

TEST(Worker, NeedsNoThreadWithoutWork) { const Worker worker("worker"); }

TEST(Worker, ServesManyLoopsAtATime) {
  constexpr size_t kWorks = 500;
  std::array<ManualLoop, 4> loops;
  Worker worker("worker");
  std::atomic<size_t> worked = 0;
  std::vector<std::jthread> threads;
  for (ManualLoop& loop : loops) {
    threads.emplace_back([&] {
      size_t done = 0;
      for (size_t i = 0; i < kWorks; ++i) worker.Run(loop, [&] { ++worked; }, [&](const Status&) { ++done; });
      while (done < kWorks) {
        if (!loop.RunOne()) std::this_thread::yield();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(worked, kWorks * loops.size());
}

TEST(Worker, RefusesMoreThanMayWaitAndDropsWhatWaitsAtTheEnd) {
  constexpr size_t kWaitingMax = 4;
  ManualLoop loop;
  std::latch working(1);
  std::latch go(1);
  std::atomic<int> worked = 0;
  int answered = 0;
  int refused = 0;
  {
    Worker worker("worker");
    const auto run = [&] {
      worker.Run(
          loop,
          [&] {
            if (worked++ > 0) return;
            working.count_down();
            go.wait();
          },
          [&](const Status& status) {
            ++answered;
            if (!status && status.error().code == Code::kOverloaded) ++refused;
          },
          kWaitingMax);
    };
    run();
    working.wait();  // the first is under way, and no longer waits
    for (size_t i = 0; i < 2 * kWaitingMax; ++i) worker.Run(loop, [] {}, [](const Status&) {});  // have no limit
    for (size_t i = 0; i < kWaitingMax; ++i) run();
    EXPECT_EQ(loop.RunAll(), 0U);
    run();
    EXPECT_EQ(loop.RunAll(), 1U);
    EXPECT_EQ(refused, 1);
    go.count_down();
  }
  loop.RunAll();
  EXPECT_EQ(answered, worked + 1);
  EXPECT_EQ(refused, 1);
}

}  // namespace
}  // namespace tocsin
