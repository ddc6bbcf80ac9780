// The client and a Cluster of three masters and three replicas: the map, redirects, nodes that fail.
#include "clients/redis/client_test_site.h"

namespace tocsin::redis {
namespace {

class ClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = real::WhyNoRedis(); !why.empty()) GTEST_SKIP() << why;
    auto made = real::RedisCluster::Make();
    ASSERT_TRUE(made) << made.error().message;
    cluster_ = std::move(*made);
    options_ = At(Mode::kCluster, cluster_->Ports());
  }
  uint64_t Redirects(ClientSite& site, std::string_view kind) {
    return site.Count("tocsin_redis_redirects_total", {{"kind", std::string(kind)}});
  }
  /// A master that does not serve the slot.
  uint16_t OtherThan(uint16_t port) {
    for (const uint16_t other : cluster_->Masters()) {
      if (other != port) return other;
    }
    return 0;
  }
  bool Writes(ClientSite& site, const std::string& key) {
    return real::WaitFor(Millis(30'000), [&] { return site.Ask("SET", {key, "v"}) == "OK"; });
  }

  std::unique_ptr<real::RedisCluster> cluster_;
  Options options_;
};

TEST_F(ClusterTest, CommandsGoToTheNodeThatServesTheirKey) {
  options_.endpoints = {{"127.0.0.1", 1}, options_.endpoints.back()};  // one that is not there, and a replica
  ClientSite site(options_);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(site.Ask("SET", {fmt::format("k{}", i), std::to_string(i)}), "OK");
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(site.Ask("GET", {fmt::format("k{}", i)}), std::to_string(i));
  EXPECT_EQ(Redirects(site, "moved"), 0);
  EXPECT_EQ(site.Ask("PING"), "PONG");
  const Script script("pair", "return {KEYS[1], KEYS[2]}");
  Command call(script, 2, "{t}a");
  call.Add("{t}b");
  EXPECT_EQ(Shown(site.Call(std::move(call))), "[{t}a {t}b]");
  EXPECT_TRUE(Listening(site, "news").Hears());
}

TEST_F(ClusterTest, EachMasterIsAskedAndShown) {
  ClientSite site(options_);
  std::promise<std::set<std::string>> seen;
  site.Run([&] {
    site.client().CallEach(Command("CLUSTER").Add("MYID"), [&](const auto& all) {
      std::set<std::string> ids;
      if (all) {
        for (const auto& [endpoint, reply] : *all) ids.insert(Shown(reply.root()));
      }
      seen.set_value(ids);
    });
  });
  EXPECT_EQ(seen.get_future().get().size(), 3);
  const auto health = site.Health();
  ASSERT_EQ(health.size(), 6);
  size_t slots = 0;
  size_t masters = 0;
  for (const ServerHealth& server : health) {
    slots += server.hash_slots;
    if (server.role != "master") continue;
    ++masters;
    EXPECT_TRUE(server.connected) << server.endpoint.Text() << ": " << server.state;
  }
  EXPECT_EQ(slots, 16'384);
  EXPECT_EQ(masters, 3);
}

TEST_F(ClusterTest, FollowsASlotThatMoved) {
  ClientSite site(options_);
  EXPECT_EQ(site.Ask("SET", {"k", "1"}), "OK");
  const uint16_t from = cluster_->MasterOf(HashSlot("k")).value();
  const int ups = site.ups();
  ASSERT_TRUE(cluster_->MigrateSlot(HashSlot("k"), OtherThan(from)));
  EXPECT_EQ(site.Ask("INCR", {"k"}), "2");
  const auto redirects = Redirects(site, "moved");
  EXPECT_LE(redirects, 1);                  // none if the client read the map again during the move
  EXPECT_EQ(site.Ask("INCR", {"k"}), "3");  // the map is right now
  EXPECT_EQ(Redirects(site, "moved"), redirects);
  EXPECT_TRUE(site.WaitForUp(ups));
}

TEST_F(ClusterTest, AsksInTheMiddleOfAMove) {
  ClientSite site(options_);
  EXPECT_EQ(site.Ask("SET", {"{t}old", "1"}), "OK");
  const int slot = HashSlot("t");
  const uint16_t from = cluster_->MasterOf(slot).value();
  const auto migration = cluster_->BeginMigration(slot, OtherThan(from));
  ASSERT_TRUE(migration) << migration.error().message;
  EXPECT_EQ(site.Ask("INCR", {"{t}old"}), "2");  // still on the old node
  EXPECT_EQ(Redirects(site, "ask"), 0);
  EXPECT_EQ(site.Ask("INCR", {"{t}new"}), "1");  // made on the new one
  EXPECT_EQ(Redirects(site, "ask"), 1);
  // A script, which the new node does not know, goes there as well.
  const Script script("add", "return redis.call('INCR', KEYS[1])");
  EXPECT_EQ(Shown(site.Call(Command(script, 1, "{t}new"))), "2");
  EXPECT_EQ(Shown(site.Call(Command(script, 1, "{t}new"))), "3");
  EXPECT_EQ(Redirects(site, "ask"), 3);

  // A command whose keys are on both sides is tried again until they are together.
  std::promise<std::string> both;
  site.Run([&] {
    site.client().Call(Make("MGET", {"{t}old", "{t}new"}),
                       [&](const Result<Reply>& reply) { both.set_value(Shown(reply)); });
  });
  EXPECT_EQ(site.Ask("INCR", {"{t}new"}), "4");
  EXPECT_EQ(cluster_->MoveKeys(*migration, 10).value(), 1);
  EXPECT_EQ(both.get_future().get(), "[2 4]");
  ASSERT_TRUE(cluster_->EndMigration(*migration));
  EXPECT_EQ(site.Ask("INCR", {"{t}old"}), "3");
}

TEST_F(ClusterTest, FollowsAReplicaThatTookOverFromADeadMaster) {
  ClientSite site(options_);
  Listening listening(site, "news");
  ASSERT_TRUE(listening.Hears());
  EXPECT_EQ(site.Ask("SET", {"k", "1"}), "OK");
  ASSERT_TRUE(cluster_->WaitUntilInStep());
  const int slot = HashSlot("k");
  const int ups = site.ups();
  const uint16_t old = cluster_->KillMasterOf(slot).value();
  const auto master = cluster_->WaitForNewMaster(slot, old);
  ASSERT_TRUE(master) << master.error().message;
  const auto known = std::chrono::steady_clock::now();
  ASSERT_TRUE(Writes(site, "k"));
  EXPECT_LT(std::chrono::steady_clock::now() - known, Millis(2'000));
  EXPECT_TRUE(site.WaitForUp(ups));
  EXPECT_TRUE(listening.Hears());
  ASSERT_TRUE(cluster_->At(old).Start());
  ASSERT_TRUE(cluster_->WaitUntilOk());
  EXPECT_EQ(site.Ask("SET", {"k", "2"}), "OK");
}

TEST_F(ClusterTest, FollowsAReplicaThatTookOverFromAMasterThatHangs) {
  options_.command_timeout = Millis(1'500);
  ClientSite site(options_);
  Listening listening(site, "news");
  ASSERT_TRUE(listening.Hears());
  EXPECT_EQ(site.Ask("SET", {"k", "1"}), "OK");
  ASSERT_TRUE(cluster_->WaitUntilInStep());
  const int slot = HashSlot("k");
  const uint16_t old = cluster_->PauseMasterOf(slot).value();
  const auto master = cluster_->WaitForNewMaster(slot, old);
  ASSERT_TRUE(master) << master.error().message;
  ASSERT_TRUE(Writes(site, "k"));
  EXPECT_TRUE(listening.Hears());
  cluster_->At(old).Continue();
  EXPECT_TRUE(Writes(site, "k"));
}

TEST_F(ClusterTest, TheSubscriptionLeavesEveryNodeThatDies) {
  ClientSite site(options_);
  Listening listening(site, "news");
  for (const uint16_t port : cluster_->Ports()) {
    ASSERT_TRUE(listening.Hears());
    cluster_->At(port).Kill();
    EXPECT_TRUE(listening.Hears()) << port;
    ASSERT_TRUE(cluster_->At(port).Start());
    ASSERT_TRUE(cluster_->WaitUntilOk());
  }
}

TEST_F(ClusterTest, AClusterThatIsNotThereIsSaidToBeSo) {
  options_.endpoints = {{"127.0.0.1", 1}};
  options_.command_timeout = Millis(500);
  ClientSite site(options_);
  const std::string answer = site.Ask("SET", {"k", "v"});
  EXPECT_TRUE(answer.starts_with("unavailable: not sent: ")) << answer;
  EXPECT_NE(answer.find("Connection refused"), std::string::npos) << answer;
}

}  // namespace
}  // namespace tocsin::redis
