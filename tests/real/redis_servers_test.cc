#include "real/redis_servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::real {
namespace {

using testing::HasSubstr;
using testing::Not;

class RedisServers : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoRedis(); !why.empty()) GTEST_SKIP() << why;
  }
};

std::string TextOf(const Result<Answer>& answer) { return answer ? answer->Text() : answer.error().message; }
std::string TextOf(const Status& status) { return status ? "ok" : status.error().message; }

TEST_F(RedisServers, OneKeepsItsPortAndDataThroughStopAndKill) {
  auto made = RedisServer::Make({.append_fsync = "always"});
  ASSERT_TRUE(made) << made.error().message;
  RedisServer& server = **made;
  const uint16_t port = server.port();
  EXPECT_EQ(TextOf(server.Ask({"SET", "k", "one two\r\n"})), "OK");
  server.Kill();
  EXPECT_FALSE(server.running());
  EXPECT_FALSE(server.Ask({"GET", "k"}));
  ASSERT_EQ(TextOf(server.Start()), "ok");
  EXPECT_EQ(server.port(), port);
  EXPECT_EQ(TextOf(Ask(port, {"GET", "k"})), "one two\r\n");
  server.Stop();
  ASSERT_EQ(TextOf(server.Start()), "ok");
  EXPECT_EQ(TextOf(server.Ask({"APPEND", "k", "!"})), "10");
  EXPECT_EQ(TextOf(server.Ask({"NO", "SUCH"})).substr(0, 19), "ERR unknown command");
}

TEST_F(RedisServers, OneThatIsPausedDoesNotAnswer) {
  auto made = RedisServer::Make();
  ASSERT_TRUE(made) << made.error().message;
  RedisServer& server = **made;
  server.Pause();
  EXPECT_TRUE(server.running());
  EXPECT_FALSE(server.awake());
  const Result<Answer> answer = Ask(server.port(), {"PING"}, {.timeout = Millis(100)});
  EXPECT_EQ(TextOf(answer), "no answer in time");
  server.Continue();
  EXPECT_EQ(TextOf(server.Ask({"PING"})), "PONG");
}

TEST_F(RedisServers, EachEndsWithItsObjectAndLeavesNothing) {
  std::filesystem::path folder;
  uint16_t port = 0;
  {
    auto made = RedisServer::Make();
    ASSERT_TRUE(made) << made.error().message;
    folder = (*made)->folder();
    port = (*made)->port();
    EXPECT_TRUE(std::filesystem::exists(folder));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_FALSE(Ask(port, {"PING"}));
}

TEST_F(RedisServers, AStartThatFailsShowsWhy) {
  const auto made = RedisServer::Make({.lines = {"no-such-directive yes"}});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("Bad directive"));
}

TEST_F(RedisServers, OneAsksForPasswordsAndKnowsUsers) {
  auto made = RedisServer::Make({.password = "secret", .users = {"alice on >wonder ~a:* +@all"}});
  ASSERT_TRUE(made) << made.error().message;
  const uint16_t port = (*made)->port();
  EXPECT_EQ(TextOf((*made)->Ask({"PING"})), "PONG");
  EXPECT_THAT(TextOf(Ask(port, {"PING"})), HasSubstr("NOAUTH"));
  EXPECT_THAT(TextOf(Ask(port, {"PING"}, {.password = "wrong"})), HasSubstr("WRONGPASS"));
  const Login alice{.username = "alice", .password = "wonder"};
  EXPECT_EQ(TextOf(Ask(port, {"SET", "a:1", "v"}, alice)), "OK");
  EXPECT_THAT(TextOf(Ask(port, {"SET", "b:1", "v"}, alice)), HasSubstr("NOPERM"));
}

// redis-cli is the TLS client here: the test is of the server and its certificates.
class Tls : public RedisServers {
 protected:
  void SetUp() override {
    RedisServers::SetUp();
    if (FindProgram("redis-cli").empty())
      GTEST_SKIP() << "the program redis-cli is not installed (Debian: redis-tools)";
  }

  static std::string Ping(const RedisServer& server, const std::string& ca, bool with_certificate) {
    const Certificates& files = server.certificates();
    std::vector<std::string> words = {
        FindProgram("redis-cli"), "-p", std::to_string(server.port()), "--tls", "--cacert", ca};
    if (with_certificate) {
      words.insert(words.end(), {"--cert", files.client_cert_file, "--key", files.client_key_file});
    }
    words.emplace_back("PING");
    const Folder folder;
    Process ping(words, folder.path(), folder / "log");
    const Status ran = ping.Run();
    return ran ? ping.Output() : ran.error().message;
  }
};

TEST_F(Tls, IsTrustedByItsAuthorityAlone) {
  auto made = RedisServer::Make({.tls = true});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(TextOf((*made)->Ask({"PING"})), "PONG");
  EXPECT_EQ(Ping(**made, (*made)->certificates().ca_file, false), "PONG\n");
  EXPECT_THAT(Ping(**made, (*made)->certificates().wrong_ca_file, false), HasSubstr("certificate verify failed"));
}

TEST_F(Tls, CanDemandACertificateOfTheClient) {
  auto made = RedisServer::Make({.tls = true, .tls_client_certificates = true});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(Ping(**made, (*made)->certificates().ca_file, true), "PONG\n");
  EXPECT_THAT(Ping(**made, (*made)->certificates().ca_file, false), Not(HasSubstr("PONG")));
}

TEST_F(RedisServers, SentinelsFollowAMasterThatIsKilledAndOneThatIsPaused) {
  auto made = RedisSentinels::Make({.password = "secret", .sentinel_password = "watch"});
  ASSERT_TRUE(made) << made.error().message;
  RedisSentinels& all = **made;
  ASSERT_EQ(all.Master().value(), all.ServerPorts()[0]);
  EXPECT_EQ(TextOf(all.Ask(*all.Master(), {"SET", "k", "v"})), "OK");
  ASSERT_EQ(TextOf(all.WaitUntilInStep()), "ok");

  const uint16_t first = all.KillMaster().value();
  const Result<uint16_t> second = all.WaitForNewMaster(first);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(TextOf(all.Ask(*second, {"GET", "k"})), "v");
  EXPECT_EQ(TextOf(all.Ask(*second, {"SET", "k", "w"})), "OK");

  ASSERT_EQ(TextOf(all.At(first).Start()), "ok");
  ASSERT_EQ(TextOf(all.WaitUntilInStep()), "ok");
  EXPECT_EQ(TextOf(all.Ask(first, {"GET", "k"})), "w");

  ASSERT_EQ(all.PauseMaster().value(), *second) << all.Sentinel(0).Output();
  const Result<uint16_t> third = all.WaitForNewMaster(*second);
  ASSERT_TRUE(third) << third.error().message;
  all.At(*second).Continue();
  ASSERT_EQ(TextOf(all.WaitUntilInStep()), "ok");
}

TEST_F(RedisServers, AClusterPromotesTheReplicaOfAKilledMaster) {
  auto made = RedisCluster::Make();
  ASSERT_TRUE(made) << made.error().message;
  RedisCluster& cluster = **made;
  constexpr int kSlotOfA = 15'495;
  const uint16_t master = cluster.MasterOf(kSlotOfA).value();
  EXPECT_EQ(master, cluster.Ports()[2]);
  EXPECT_EQ(TextOf(cluster.Ask(master, {"SET", "a", "1"})), "OK");
  EXPECT_EQ(TextOf(cluster.Ask(cluster.Ports()[0], {"GET", "a"})), fmt::format("MOVED 15495 127.0.0.1:{}", master));
  ASSERT_EQ(TextOf(cluster.WaitUntilInStep()), "ok");

  ASSERT_EQ(cluster.KillMasterOf(kSlotOfA).value(), master);
  const Result<uint16_t> replica = cluster.WaitForNewMaster(kSlotOfA, master);
  ASSERT_TRUE(replica) << replica.error().message;
  EXPECT_EQ(*replica, cluster.Ports()[5]);
  ASSERT_EQ(TextOf(cluster.WaitUntilOk()), "ok");
  EXPECT_EQ(TextOf(cluster.Ask(*replica, {"GET", "a"})), "1");

  ASSERT_EQ(TextOf(cluster.At(master).Start()), "ok");
  ASSERT_EQ(TextOf(cluster.WaitUntilOk()), "ok");
  ASSERT_EQ(TextOf(cluster.WaitUntilInStep()), "ok");
  EXPECT_EQ(cluster.Masters(), (std::vector{cluster.Ports()[0], cluster.Ports()[1], *replica}));
}

TEST_F(RedisServers, AClusterMovesAHashSlotStepByStep) {
  auto made = RedisCluster::Make({.password = "secret"});
  ASSERT_TRUE(made) << made.error().message;
  RedisCluster& cluster = **made;
  constexpr int kSlotOfA = 15'495;
  const uint16_t from = cluster.MasterOf(kSlotOfA).value();
  const uint16_t to = cluster.Ports()[0];
  for (const char* key : {"{a}1", "{a}2", "{a}3"}) EXPECT_EQ(TextOf(cluster.Ask(from, {"SET", key, "v"})), "OK");

  const auto migration = cluster.BeginMigration(kSlotOfA, to);
  ASSERT_TRUE(migration) << migration.error().message;
  EXPECT_EQ(cluster.MoveKeys(*migration, 1).value(), 1U);
  EXPECT_THAT(TextOf(cluster.Ask(from, {"MGET", "{a}1", "{a}2", "{a}3"})), HasSubstr("TRYAGAIN"));
  EXPECT_EQ(TextOf(cluster.Ask(from, {"GET", "{a}4"})), fmt::format("ASK 15495 127.0.0.1:{}", to));
  EXPECT_EQ(cluster.MoveKeys(*migration, 10).value(), 2U);
  EXPECT_EQ(cluster.MoveKeys(*migration, 10).value(), 0U);
  ASSERT_EQ(TextOf(cluster.EndMigration(*migration)), "ok");
  ASSERT_EQ(TextOf(cluster.WaitUntilOk()), "ok");
  EXPECT_EQ(cluster.MasterOf(kSlotOfA).value(), to);
  EXPECT_EQ(TextOf(cluster.Ask(to, {"MGET", "{a}1", "{a}2", "{a}3"})), "[v, v, v]");

  ASSERT_EQ(TextOf(cluster.MigrateSlot(kSlotOfA, from)), "ok");
  EXPECT_EQ(TextOf(cluster.Ask(from, {"MGET", "{a}1", "{a}2", "{a}3"})), "[v, v, v]");
}

}  // namespace
}  // namespace tocsin::real
