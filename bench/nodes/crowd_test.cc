// Sixteen nodes join, leave and die, and every group always finds its one owner again.
#include "nodes/crowd.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "real/redis_servers.h"

namespace tocsin::bench {
namespace {

TEST(Crowd, EveryGroupFindsItsOwnerAgain) {
  if (const std::string why = real::WhyNoRedis(); !why.empty()) GTEST_SKIP() << why;
  auto server = real::RedisServer::Make();
  ASSERT_TRUE(server) << server.error().message;
  constexpr Millis kMost{60'000};
  Crowd crowd({.port = (*server)->port(), .groups = 256, .session = Millis(3'000)});
  crowd.Join(16);
  const auto joined = crowd.AwaitOwners(kMost);
  EXPECT_TRUE(joined) << joined.error().message;
  crowd.Leave(2);
  const auto left = crowd.AwaitOwners(kMost);
  EXPECT_TRUE(left) << left.error().message;
  crowd.Die(3);
  const auto died = crowd.AwaitOwners(kMost);
  EXPECT_TRUE(died) << died.error().message;
  crowd.Join(5);
  const auto back = crowd.AwaitOwners(kMost);
  EXPECT_TRUE(back) << back.error().message;
}

TEST(Crowd, AnIdleNodeOfSixteenSendsFewCommands) {
  if (const std::string why = real::WhyNoRedis(); !why.empty()) GTEST_SKIP() << why;
  for (const uint32_t groups : {64U, 1024U}) {
    auto server = real::RedisServer::Make();
    ASSERT_TRUE(server) << server.error().message;
    Crowd crowd({.port = (*server)->port(), .groups = groups});
    crowd.Join(16);
    ASSERT_TRUE(crowd.AwaitOwners(Millis(60'000)));
    // The best of three: a busy machine may drop a node, and what that costs is not asked here.
    const CommandCounter counter((*server)->port());
    Millis longest{0};
    for (int i = 0; i < 3; ++i) longest = std::max(longest, counter.TimeOf(16 * 20 * 2));
    EXPECT_GE(longest, Millis(2'000)) << groups << ": for as many as sixteen nodes may send in two seconds";
  }
}

}  // namespace
}  // namespace tocsin::bench
