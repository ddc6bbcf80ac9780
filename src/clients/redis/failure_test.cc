// The client and one server that fails: killed, stopped, not there, a replica.
#include "clients/redis/client_test_site.h"

namespace tocsin::redis {
namespace {

class FailureTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = real::WhyNoRedis(); !why.empty()) GTEST_SKIP() << why;
    auto made = real::RedisServer::Make({.append_fsync = "always"});
    ASSERT_TRUE(made) << made.error().message;
    server_ = std::move(*made);
  }
  Options Here(Millis command_timeout = Millis(5'000)) const {
    Options options = At(Mode::kSingle, {server_->port()});
    options.command_timeout = command_timeout;
    return options;
  }
  int64_t Stored(const std::string& key) { return std::stoll("0" + server_->Ask({"GET", key}).value().text); }

  std::unique_ptr<real::RedisServer> server_;
};

TEST_F(FailureTest, AKilledServerLosesNothingThatWasAnswered) {
  ClientSite site(Here());
  Listening listening(site, "news");
  ASSERT_TRUE(listening.Hears());
  Incrementing load(site, {"a", "b", "c"}, 200);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(load.WaitForMore(5'000));
    const int ups = site.ups();
    server_->Kill();
    ASSERT_TRUE(server_->Start());
    EXPECT_TRUE(site.WaitForUp(ups));
  }
  EXPECT_TRUE(load.WaitForMore(5'000));
  load.Stop();
  EXPECT_EQ(load.strange, std::vector<std::string>());
  for (size_t i = 0; i < load.keys().size(); ++i) {
    const int64_t stored = Stored(load.keys()[i]);
    EXPECT_GE(stored, load.told()[i]);
    EXPECT_LE(stored, load.told()[i] + load.unknown()[i]);
  }
  EXPECT_TRUE(listening.Hears());
  EXPECT_GE(site.Count("tocsin_redis_reconnects_total"), 6);  // commands and messages, three times
}

TEST_F(FailureTest, WhatWasNotSentWaitsForTheServer) {
  ClientSite site(Here());
  EXPECT_EQ(site.Ask("SET", {"k", "1"}), "OK");
  server_->Kill();
  ASSERT_TRUE(real::WaitFor(Millis(10'000), [&] { return !site.Health()[0].connected; }));
  EXPECT_NE(site.Health()[0].state.find("127.0.0.1"), std::string::npos) << site.Health()[0].state;
  std::promise<std::string> answer;
  site.Run([&] {
    site.client().Call(Command("INCR", "k"), [&](const Result<Reply>& reply) { answer.set_value(Shown(reply)); });
  });
  ASSERT_TRUE(server_->Start());
  EXPECT_EQ(answer.get_future().get(), "2");
}

TEST_F(FailureTest, AServerThatIsNotThereIsSaidToBeSo) {
  server_->Kill();
  ClientSite site(Here(Millis(300)));
  const std::string answer = site.Ask("PING");
  EXPECT_TRUE(answer.starts_with("unavailable: not sent: ")) << answer;
  EXPECT_NE(answer.find("Connection refused"), std::string::npos) << answer;
  ASSERT_TRUE(server_->Start());
  EXPECT_TRUE(site.WaitForUp(0));
  EXPECT_EQ(site.Ask("PING"), "PONG");
}

TEST_F(FailureTest, AServerThatHangsIsGivenUpAtTheDeadlineAndUsedAgainLater) {
  ClientSite site(Here(Millis(400)));
  Listening listening(site, "news");
  ASSERT_TRUE(listening.Hears());
  server_->Pause();
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::string> answers;
  std::promise<void> all;
  site.Run([&] {
    for (int i = 0; i < 100; ++i) {
      site.client().Call(Command("INCR", "k"), [&](const Result<Reply>& reply) {
        answers.push_back(Shown(reply));
        if (answers.size() == 100) all.set_value();
      });
    }
  });
  all.get_future().wait();
  const auto took = std::chrono::steady_clock::now() - begun;
  EXPECT_GE(took, Millis(400));
  EXPECT_LT(took, Millis(4'000));
  for (const std::string& answer : answers) {
    EXPECT_TRUE(answer.starts_with("unavailable: ")) << answer;
    EXPECT_NE(answer.find("unknown"), std::string::npos) << answer;
  }
  // Connections to it can be made, but it does not answer: what is called now is not sent.
  const std::string unsent = site.Ask("INCR", {"k"});
  EXPECT_TRUE(unsent.starts_with("unavailable: ")) << unsent;
  const int ups = site.ups();
  server_->Continue();
  EXPECT_TRUE(site.WaitForUp(ups));
  EXPECT_EQ(site.Ask("SET", {"k", "v"}), "OK");
  EXPECT_TRUE(listening.Hears());
}

TEST_F(FailureTest, AReplicaIsTriedAgainUntilItIsAMaster) {
  ClientSite site(Here());
  ASSERT_TRUE(server_->Ask({"REPLICAOF", "127.0.0.1", "1"}));
  std::promise<std::string> answer;
  site.Run([&] {
    site.client().Call(Command("INCR", "k"), [&](const Result<Reply>& reply) { answer.set_value(Shown(reply)); });
  });
  EXPECT_EQ(site.Ask("GET", {"k"}), "nil");  // reads go on
  ASSERT_TRUE(server_->Ask({"REPLICAOF", "NO", "ONE"}));
  EXPECT_EQ(answer.get_future().get(), "1");
}

TEST_F(FailureTest, AReplicaThatStaysOneIsNamedAtTheDeadline) {
  ClientSite site(Here(Millis(300)));
  ASSERT_TRUE(server_->Ask({"REPLICAOF", "127.0.0.1", "1"}));
  const std::string answer = site.Ask("INCR", {"k"});
  EXPECT_TRUE(answer.starts_with("unavailable: not sent: READONLY")) << answer;
}

TEST_F(FailureTest, AConnectionThatTheServerClosesIsMadeAgain) {
  ClientSite site(Here());
  Listening listening(site, "news");
  ASSERT_TRUE(listening.Hears());
  for (const char* type : {"normal", "pubsub"}) {
    const int ups = site.ups();
    ASSERT_TRUE(server_->Ask({"CLIENT", "KILL", "TYPE", type}));
    EXPECT_TRUE(site.WaitForUp(ups)) << type;
  }
  EXPECT_EQ(site.Ask("PING"), "PONG");
  EXPECT_TRUE(listening.Hears());
}

TEST_F(FailureTest, AServerWithoutRoomIsTriedAgain) {
  ASSERT_TRUE(server_->Ask({"CONFIG", "SET", "maxclients", "1"}));
  ClientSite site(Here(Millis(300)));
  // Ask of the test may be the one client: either way this one finds no room, or is thrown out.
  ClientSite second(Here(Millis(300)));
  const std::string answers = site.Ask("PING") + second.Ask("PING");
  EXPECT_NE(answers.find("max number of clients"), std::string::npos) << answers;
}

}  // namespace
}  // namespace tocsin::redis
