#include "server/memory_plan.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

constexpr size_t kMiB = 1 << 20;

MemoryPlan PlanOf(size_t memory_limit, size_t body_size = 16 * kMiB) {
  Config config;
  config.memory_limit = memory_limit;
  config.limits_body_size = body_size;
  return MemoryPlan(config);
}

TEST(MemoryPlan, JobsAndTransfersTakeNoMoreThanTheLimitAndAFixedBase) {
  for (size_t limit = 16 * kMiB; limit < size_t{1} << 40; limit = limit / 2 * 3) {
    const MemoryPlan plan = PlanOf(limit);
    EXPECT_LE(plan.jobs_bytes + plan.transfer_bytes, limit + 64 * kMiB) << limit;
    EXPECT_GE(plan.transfer_bytes, 64 * kMiB);
    EXPECT_GE(plan.jobs_bytes, limit / 8 * 7);
  }
}

TEST(MemoryPlan, ASmallLimitIsAllForJobs) {
  EXPECT_EQ(PlanOf(64 * kMiB).jobs_bytes, 64 * kMiB);
  EXPECT_EQ(PlanOf(512 * kMiB).jobs_bytes, 512 * kMiB);
  EXPECT_EQ(PlanOf(1024 * kMiB).jobs_bytes, 960 * kMiB);
}

TEST(MemoryPlan, FourBodiesHaveRoom) {
  EXPECT_EQ(PlanOf(64 * kMiB, 100 * kMiB).transfer_bytes, 400 * kMiB);
  EXPECT_EQ(PlanOf(64 * kMiB, 100 * kMiB).jobs_bytes, 64 * kMiB);
}

}  // namespace
}  // namespace tocsin
