// Sharded channels in a real Cluster: each is heard at the server of its hash slot, wherever that moves.
#include "clients/redis/client_test_site.h"

namespace tocsin::redis {
namespace {

using Reach = Listening::Reach;

constexpr int kChannels = 12;

std::string ChannelOf(int number) { return fmt::format("{{{}}}news", number); }

class ShardChannelsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = real::WhyNoRedis(); !why.empty()) GTEST_SKIP() << why;
  }
  void Start(real::ClusterOptions options = {}) {
    auto made = real::RedisCluster::Make(std::move(options));
    ASSERT_TRUE(made) << made.error().message;
    cluster_ = std::move(*made);
  }
  Options At() { return redis::At(Mode::kCluster, cluster_->Ports()); }
  std::vector<std::unique_ptr<Listening>> ListenToAll(ClientSite& site, std::string_view publish = "SPUBLISH") {
    std::vector<std::unique_ptr<Listening>> all;
    for (int i = 0; i < kChannels; ++i) {
      all.push_back(std::make_unique<Listening>(site, ChannelOf(i), Reach::kShard, publish));
    }
    return all;
  }
  uint16_t OtherThan(uint16_t port) {
    for (const uint16_t other : cluster_->Masters()) {
      if (other != port) return other;
    }
    return 0;
  }
  /// How many listen there: of `PUBSUB SHARDNUMSUB` or `PUBSUB NUMSUB`.
  std::string Listeners(uint16_t port, const std::string& question, const std::string& channel) {
    const auto answer = cluster_->Ask(port, {"PUBSUB", question, channel});
    return answer && answer->elements.size() == 2 ? answer->elements[1].Text() : "?";
  }

  std::unique_ptr<real::RedisCluster> cluster_;
};

TEST_F(ShardChannelsTest, EachIsHeardAtTheServerOfItsHashSlotAlone) {
  ASSERT_NO_FATAL_FAILURE(Start());
  ClientSite site(At());
  const auto all = ListenToAll(site);
  for (int i = 0; i < kChannels; ++i) {
    ASSERT_TRUE(all[static_cast<size_t>(i)]->Hears()) << i;
    const uint16_t home = cluster_->MasterOf(HashSlot(ChannelOf(i))).value();
    EXPECT_EQ(Listeners(home, "SHARDNUMSUB", ChannelOf(i)), "1");
    for (const uint16_t port : cluster_->Ports()) EXPECT_EQ(Listeners(port, "NUMSUB", ChannelOf(i)), "0");
  }
  // Not after it is unsubscribed.
  site.Run([&] { site.client().Unsubscribe(ChannelOf(0)); });
  const uint16_t home = cluster_->MasterOf(HashSlot(ChannelOf(0))).value();
  EXPECT_TRUE(real::WaitFor(Millis(10'000), [&] { return Listeners(home, "SHARDNUMSUB", ChannelOf(0)) == "0"; }));
}

TEST_F(ShardChannelsTest, FollowsAHashSlotThatMoves) {
  ASSERT_NO_FATAL_FAILURE(Start());
  ClientSite site(At());
  const auto all = ListenToAll(site);
  for (const auto& one : all) ASSERT_TRUE(one->Hears());
  for (int round = 0; round < 3; ++round) {
    const int hash_slot = HashSlot(ChannelOf(0));
    const uint16_t from = cluster_->MasterOf(hash_slot).value();
    const int ups = site.ups();
    ASSERT_TRUE(cluster_->MigrateSlot(hash_slot, OtherThan(from)));
    // No command tells the client that the slot has moved: the end of the subscription does.
    const uint16_t to = cluster_->MasterOf(hash_slot).value();
    EXPECT_TRUE(real::WaitFor(Millis(10'000), [&] { return Listeners(to, "SHARDNUMSUB", ChannelOf(0)) == "1"; }));
    EXPECT_TRUE(site.WaitForUp(ups)) << "messages may have been lost: it says so";
    for (const auto& one : all) EXPECT_TRUE(one->Hears());
  }
}

TEST_F(ShardChannelsTest, FollowsAReplicaThatTookOver) {
  ASSERT_NO_FATAL_FAILURE(Start());
  ClientSite site(At());
  const auto all = ListenToAll(site);
  for (const auto& one : all) ASSERT_TRUE(one->Hears());
  const int hash_slot = HashSlot(ChannelOf(0));
  const int ups = site.ups();
  const uint16_t old = cluster_->KillMasterOf(hash_slot).value();
  const auto master = cluster_->WaitForNewMaster(hash_slot, old);
  ASSERT_TRUE(master) << master.error().message;
  for (const auto& one : all) EXPECT_TRUE(one->Hears());
  EXPECT_TRUE(site.WaitForUp(ups));
  // And the old master, which is a replica now, is asked to be one again.
  ASSERT_TRUE(cluster_->At(old).Start());
  ASSERT_TRUE(cluster_->WaitUntilOk());
  ASSERT_TRUE(cluster_->WaitUntilInStep());
  ASSERT_TRUE(cluster_->Ask(old, {"CLUSTER", "FAILOVER"}));
  ASSERT_TRUE(cluster_->WaitForNewMaster(hash_slot, *master));
  for (const auto& one : all) EXPECT_TRUE(one->Hears());
}

TEST_F(ShardChannelsTest, ServersThatHaveNoneGetPlainSubscriptions) {
  real::ClusterOptions options;
  for (const std::string_view name : {"SSUBSCRIBE", "SUNSUBSCRIBE", "SPUBLISH"}) {
    options.lines.push_back(fmt::format("rename-command {} \"\"", name));  // as in Redis 6
  }
  ASSERT_NO_FATAL_FAILURE(Start(options));
  ClientSite site(At());
  const auto all = ListenToAll(site, "PUBLISH");
  for (const auto& one : all) EXPECT_TRUE(one->Hears());
  EXPECT_TRUE(site.Ask("SPUBLISH", {ChannelOf(0), "x"}).starts_with("!ERR unknown command"));
  // A connection that is lost tries again.
  const int ups = site.ups();
  for (const uint16_t port : cluster_->Masters()) (void)cluster_->Ask(port, {"CLIENT", "KILL", "TYPE", "pubsub"});
  EXPECT_TRUE(site.WaitForUp(ups));
  for (const auto& one : all) EXPECT_TRUE(one->Hears());
}

}  // namespace
}  // namespace tocsin::redis
