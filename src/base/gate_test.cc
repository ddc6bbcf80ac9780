#include "base/gate.h"

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(Gate, NobodyEntersAfterClose) {
  Gate gate;
  {
    const Gate::Pass pass = gate.Enter();
    EXPECT_TRUE(pass);
  }
  gate.Close();
  EXPECT_FALSE(gate.Enter());
  gate.Close();
}

TEST(Gate, AMovedPassLeavesOnce) {
  Gate gate;
  {
    Gate::Pass first = gate.Enter();
    const Gate::Pass second = std::move(first);
    EXPECT_TRUE(second);
  }
  gate.Close();  // hangs, or underflows, where a pass left never or twice
}

TEST(Gate, CloseWaitsForEveryoneInside) {
  for (int round = 0; round < 200; ++round) {
    auto gate = std::make_unique<Gate>();
    std::atomic<bool> open = true;
    std::atomic<int> entered = 0;
    std::atomic<int> late = 0;
    std::latch started(4);
    std::vector<std::jthread> tasks;
    for (int i = 0; i < 3; ++i) {
      tasks.emplace_back([&] {
        started.count_down();
        while (const Gate::Pass pass = gate->Enter()) {
          if (!open) ++late;
          ++entered;
          std::this_thread::yield();
          if (!open) ++late;
        }
      });
    }
    started.arrive_and_wait();
    while (entered < 3) std::this_thread::yield();
    gate->Close();
    open = false;
    tasks.clear();
    EXPECT_EQ(late, 0) << "inside after Close returned";
  }
}

}  // namespace
}  // namespace tocsin
