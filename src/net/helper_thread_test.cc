#include "net/helper_thread.h"

#include <gtest/gtest.h>

#include "net/asio_loop.h"

namespace tocsin::net {
namespace {

TEST(HelperThread, DoesItsWorkInOrderAndElsewhereAndAnswersOnTheLoop) {
  const RealClock clock;
  AsioLoop loop(clock);
  HelperThread helper(loop, "helper");
  constexpr int kWorks = 1'000;
  std::vector<int> worked(kWorks);  // each element is read only once its work is done
  int next = 0;
  std::vector<int> done;
  bool elsewhere = true;
  for (int i = 0; i < kWorks; ++i) {
    helper.Run(
        [&, i] {
          elsewhere = elsewhere && !loop.InThread();
          worked[static_cast<size_t>(i)] = next++;
        },
        [&, i] {
          EXPECT_TRUE(loop.InThread());
          EXPECT_EQ(worked[static_cast<size_t>(i)], i);
          done.push_back(i);
          if (done.size() == kWorks) loop.Stop();
        });
  }
  loop.Run();
  EXPECT_EQ(done.size(), kWorks);
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_TRUE(elsewhere);
}

TEST(HelperThread, NeedsNoThreadWithoutWork) {
  const RealClock clock;
  AsioLoop loop(clock);
  const HelperThread helper(loop, "helper");
}

}  // namespace
}  // namespace tocsin::net
