// The client behind three sentinels: it finds the master and follows it, whatever fails.
#include "clients/redis/client_test_site.h"

namespace tocsin::redis {
namespace {

class SentinelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = real::WhyNoRedis(); !why.empty()) GTEST_SKIP() << why;
    auto made = real::RedisSentinels::Make({.password = "secret", .sentinel_password = "watch"});
    ASSERT_TRUE(made) << made.error().message;
    servers_ = std::move(*made);
    options_ = At(Mode::kSentinel, servers_->SentinelPorts());
    options_.password = "secret";
    options_.sentinel_password = "watch";
    options_.command_timeout = Millis(1'500);
  }
  /// Where the client's commands go.
  uint16_t PortOf(ClientSite& site) { return site.Health()[0].endpoint.port; }
  /// Calls until one succeeds, as users would.
  bool Writes(ClientSite& site) {
    return real::WaitFor(Millis(20'000), [&] { return site.Ask("SET", {"k", "v"}) == "OK"; });
  }

  std::unique_ptr<real::RedisSentinels> servers_;
  Options options_;
};

TEST_F(SentinelTest, FindsTheMasterAndSaysWhoIsWho) {
  // Two that are not there at the front.
  options_.endpoints.insert(options_.endpoints.begin(), {{"127.0.0.1", 1}, {"127.0.0.1", 2}});
  ClientSite site(options_);
  EXPECT_EQ(site.Ask("SET", {"k", "v"}), "OK");
  EXPECT_EQ(PortOf(site), servers_->Master().value());
  const auto health = site.Health();
  ASSERT_EQ(health.size(), 6);
  EXPECT_EQ(health[0].role, "master");
  EXPECT_EQ(health[5].role, "sentinel");
}

TEST_F(SentinelTest, AMasterThatNoSentinelKnowsIsNamed) {
  options_.master = "nosuch";
  options_.command_timeout = Millis(500);
  ClientSite site(options_);
  const std::string answer = site.Ask("PING");
  EXPECT_TRUE(answer.starts_with("unavailable: not sent: ")) << answer;
  EXPECT_NE(answer.find("knows no master 'nosuch'"), std::string::npos) << answer;
}

TEST_F(SentinelTest, FollowsAFailoverAfterTheMasterDied) {
  ClientSite site(options_);
  Listening listening(site, "news");
  ASSERT_TRUE(listening.Hears());
  ASSERT_TRUE(servers_->WaitUntilInStep());
  const int ups = site.ups();
  const uint16_t old = servers_->KillMaster().value();
  const auto master = servers_->WaitForNewMaster(old);
  ASSERT_TRUE(master) << master.error().message;
  const auto known = std::chrono::steady_clock::now();
  ASSERT_TRUE(Writes(site));
  EXPECT_LT(std::chrono::steady_clock::now() - known, Millis(2'000));
  EXPECT_EQ(PortOf(site), *master);
  EXPECT_TRUE(site.WaitForUp(ups));
  EXPECT_TRUE(listening.Hears());

  // The old master comes back as a replica, and nothing goes there.
  ASSERT_TRUE(servers_->At(old).Start());
  ASSERT_TRUE(servers_->WaitUntilInStep());
  EXPECT_EQ(site.Ask("SET", {"k", "w"}), "OK");
  EXPECT_EQ(PortOf(site), *master);
}

TEST_F(SentinelTest, FollowsAFailoverFromAMasterThatHangs) {
  ClientSite site(options_);
  Listening listening(site, "news");
  ASSERT_TRUE(listening.Hears());
  ASSERT_TRUE(servers_->WaitUntilInStep());
  const uint16_t old = servers_->PauseMaster().value();
  const auto master = servers_->WaitForNewMaster(old);
  ASSERT_TRUE(master) << master.error().message;
  // Without a command that would fail first.
  EXPECT_TRUE(real::WaitFor(Millis(5'000), [&] { return PortOf(site) == *master; }));
  ASSERT_TRUE(Writes(site));
  EXPECT_EQ(PortOf(site), *master);
  EXPECT_TRUE(listening.Hears());
  servers_->At(old).Continue();
  EXPECT_TRUE(Writes(site));
  EXPECT_EQ(PortOf(site), *master);
}

TEST_F(SentinelTest, FollowsAFailoverThatWasAskedFor) {
  ClientSite site(options_);
  Incrementing load(site, {"a", "b"}, 50);
  ASSERT_TRUE(load.WaitForMore(1'000));
  ASSERT_TRUE(servers_->WaitUntilInStep());
  const uint16_t old = servers_->Master().value();
  ASSERT_TRUE(servers_->Ask(servers_->SentinelPorts()[0], {"SENTINEL", "FAILOVER", real::RedisSentinels::kMasterName}));
  const auto master = servers_->WaitForNewMaster(old);
  ASSERT_TRUE(master) << master.error().message;
  EXPECT_TRUE(real::WaitFor(Millis(10'000), [&] { return PortOf(site) == *master; }));
  EXPECT_TRUE(load.WaitForMore(1'000));
  load.Stop();
  EXPECT_EQ(load.strange, std::vector<std::string>());
}

// Peer bug 3: wedged while Sentinel resolves a new master.
TEST_F(SentinelTest, IsNotWedgedWhereNoSentinelAnswersDuringTheFailover) {
  ClientSite site(options_);
  ASSERT_EQ(site.Ask("SET", {"k", "v"}), "OK");
  ASSERT_TRUE(servers_->WaitUntilInStep());
  for (size_t i = 0; i < 3; ++i) servers_->Sentinel(i).Pause();
  const uint16_t old = [&] {
    for (const uint16_t port : servers_->ServerPorts()) {
      if (port == PortOf(site)) return port;
    }
    return uint16_t{0};
  }();
  servers_->At(old).Kill();
  const std::string answer = site.Ask("SET", {"k", "v"});
  EXPECT_TRUE(answer.starts_with("unavailable: ")) << answer;
  // One that is dead and two that come back.
  servers_->Sentinel(0).Kill();
  servers_->Sentinel(1).Continue();
  servers_->Sentinel(2).Continue();
  const auto master = servers_->WaitForNewMaster(old);
  ASSERT_TRUE(master) << master.error().message;
  ASSERT_TRUE(Writes(site));
  EXPECT_EQ(PortOf(site), *master);
}

}  // namespace
}  // namespace tocsin::redis
