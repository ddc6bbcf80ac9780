// Members behind Sentinel and on a Cluster, through a failover of the master that has their list. All on one loop, that
// of the test.
#include <algorithm>
#include <array>
#include <optional>
#include <ranges>

#include <gtest/gtest.h>

#include "clients/redis/command.h"
#include "coordination/redis/coordinator.h"
#include "net/asio_loop.h"
#include "real/redis_servers.h"

namespace tocsin {
namespace {

constexpr Millis kSession{3'000};
constexpr Millis kSoon{30'000};  // a failover takes some seconds

class RedisFailover : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = real::WhyNoRedis(); !why.empty()) GTEST_SKIP() << why;
  }

  std::unique_ptr<RedisCoordinator> Join(const std::string& id, redis::Options options, Members& latest) {
    auto made = RedisCoordinator::Make(loop_.io(), clock_, std::move(options), metrics_, {.session = kSession});
    (*made)->Join({.id = id}, [&latest](const Members& members) { latest = members; });
    return *std::move(made);
  }

  bool RunUntil(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kSoon;
    while (!condition()) {
      loop_.io().restart();
      if (loop_.io().run_one_until(deadline) == 0 && std::chrono::steady_clock::now() >= deadline) return false;
    }
    return true;
  }

  /// Two nodes join, the master fails, and a third one joins.
  void Survive(const redis::Options& options, const std::function<void()>& fail_over) {
    std::array<Members, 3> seen;
    const auto all_see = [&seen](size_t count) {
      return [&seen, count] {
        return std::ranges::all_of(seen | std::views::take(count), [count](const Members& view) {
          return view.joined && view.members.size() == count;
        });
      };
    };
    const auto a = Join("a", options, seen[0]);
    const auto b = Join("b", options, seen[1]);
    ASSERT_TRUE(RunUntil(all_see(2)));
    fail_over();
    const auto c = Join("c", options, seen[2]);
    EXPECT_TRUE(RunUntil(all_see(3))) << a->Health().state << "; " << c->Health().state;
    // They still hear of each other at once.
    std::optional<Status> left;
    c->Leave([&left](Status status) { left = std::move(status); });
    ASSERT_TRUE(RunUntil([&] { return left.has_value(); }));
    EXPECT_TRUE(*left) << left->error().message;
    EXPECT_TRUE(RunUntil(all_see(2)));
  }

  RealClock clock_;
  net::AsioLoop loop_{clock_};
  metrics::Registry metrics_;
};

TEST_F(RedisFailover, OfAMasterBehindSentinel) {
  auto servers = real::RedisSentinels::Make();
  ASSERT_TRUE(servers) << servers.error().message;
  redis::Options options{.mode = redis::Mode::kSentinel, .master = real::RedisSentinels::kMasterName};
  for (const uint16_t port : (*servers)->SentinelPorts()) options.endpoints.push_back({"127.0.0.1", port});
  Survive(options, [&] {
    const auto old = (*servers)->KillMaster();
    ASSERT_TRUE(old) << old.error().message;
    const auto master = (*servers)->WaitForNewMaster(*old);
    ASSERT_TRUE(master) << master.error().message;
  });
}

TEST_F(RedisFailover, OfAMasterOfACluster) {
  auto cluster = real::RedisCluster::Make();
  ASSERT_TRUE(cluster) << cluster.error().message;
  redis::Options options{.mode = redis::Mode::kCluster};
  for (const uint16_t port : (*cluster)->Ports()) options.endpoints.push_back({"127.0.0.1", port});
  const int hash_slot = redis::HashSlot(RosterKeys("tocsin").lease);
  ASSERT_EQ(hash_slot, redis::HashSlot(RosterKeys("tocsin").version));
  Survive(options, [&] {
    const auto old = (*cluster)->KillMasterOf(hash_slot);
    ASSERT_TRUE(old) << old.error().message;
    const auto master = (*cluster)->WaitForNewMaster(hash_slot, *old);
    ASSERT_TRUE(master) << master.error().message;
  });
}

}  // namespace
}  // namespace tocsin
