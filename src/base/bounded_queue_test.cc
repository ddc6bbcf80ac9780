#include "base/bounded_queue.h"

#include <atomic>
#include <semaphore>
#include <thread>

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(BoundedQueue, RefusesRequestsWhenFullButNeverReplies) {
  BoundedQueue queue(2);
  EXPECT_EQ(queue.TryPush([] {}), Pushed::kFirst);
  EXPECT_EQ(queue.TryPush([] {}), Pushed::kMore);
  EXPECT_EQ(queue.TryPush([] {}), Pushed::kRefused);
  EXPECT_EQ(queue.Push([] {}), Pushed::kMore);
  EXPECT_EQ(queue.size(), 3U);
  std::vector<Task> drained;
  queue.Drain(drained);
  EXPECT_EQ(drained.size(), 3U);
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_EQ(queue.TryPush([] {}), Pushed::kFirst) << "the consumer has to be woken again";
}

TEST(BoundedQueue, ManyProducersLoseNothingAndEachKeepsItsOrder) {
  constexpr int kProducers = 4;
  constexpr int kEach = 20'000;
  BoundedQueue queue(64);
  std::counting_semaphore<> wakeups(0);
  std::vector<int> next(kProducers, 0);
  std::atomic<bool> in_order = true;

  std::vector<std::jthread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (int i = 0; i < kEach;) {
        Task task = [&, p, i] { in_order = in_order && next[p]++ == i; };
        const Pushed pushed = i % 3 == 0 ? queue.Push(std::move(task)) : queue.TryPush(std::move(task));
        if (pushed == Pushed::kFirst) wakeups.release();
        if (pushed == Pushed::kRefused) {
          std::this_thread::yield();
        } else {
          ++i;
        }
      }
    });
  }
  int ran = 0;
  std::vector<Task> drained;
  while (ran < kProducers * kEach) {  // a lost wake-up hangs here
    wakeups.acquire();
    queue.Drain(drained);
    for (Task& task : drained) task();
    ran += static_cast<int>(drained.size());
    drained.clear();
  }
  EXPECT_TRUE(in_order);
  EXPECT_EQ(next, std::vector<int>(kProducers, kEach));
}

}  // namespace
}  // namespace tocsin
