// Options::wait_replicas: a master with a replica, which hangs now and then.
#include <numeric>

#include "clients/redis/client_test_site.h"

namespace tocsin::redis {
namespace {

class ReplicasTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = real::WhyNoRedis(); !why.empty()) GTEST_SKIP() << why;
    const std::vector<std::string> at_once{"repl-diskless-sync-delay 0"};
    auto master = real::RedisServer::Make({.append_only = false, .lines = at_once});
    ASSERT_TRUE(master) << master.error().message;
    master_ = std::move(*master);
    auto replica = real::RedisServer::Make({.append_only = false, .lines = at_once});
    ASSERT_TRUE(replica) << replica.error().message;
    replica_ = std::move(*replica);
    ASSERT_TRUE(replica_->Ask({"REPLICAOF", "127.0.0.1", std::to_string(master_->port())}));
    ASSERT_TRUE(real::WaitFor(Millis(20'000), [&] { return Following() && Online(); }));
    options_ = At(Mode::kSingle, {master_->port()});
    options_.wait_replicas = 1;
  }
  bool Following() {
    return real::InfoField(replica_->Ask({"INFO", "replication"}).value().text, "master_link_status") == "up";
  }
  bool Online() {
    const std::string replica = real::InfoField(master_->Ask({"INFO", "replication"}).value().text, "slave0");
    return replica.find("state=online") != std::string::npos;
  }
  /// One that was answered as usual: on a busy machine a replica may take longer than it may.
  static bool Answered(ClientSite& site, const Command& command) {
    return real::WaitFor(Millis(20'000), [&] { return !Shown(site.Call(command)).starts_with("!"); });
  }
  /// How often the server was asked to wait.
  int64_t Waits() {
    const std::string calls = real::InfoField(master_->Ask({"INFO", "commandstats"}).value().text, "cmdstat_wait");
    return calls.starts_with("calls=") ? std::stoll(calls.substr(6)) : 0;
  }
  Command Push() const {
    Command command(push_, 1, "list");
    command.Add("x");
    return command;
  }

  const Script push_{"push", "return redis.call('RPUSH', KEYS[1], ARGV[1])", true};
  std::unique_ptr<real::RedisServer> master_;
  std::unique_ptr<real::RedisServer> replica_;
  Options options_;
};

TEST_F(ReplicasTest, WhatIsAnsweredIsOnTheReplica) {
  ClientSite site(options_);
  for (int i = 0; i < 20; ++i) {
    const auto reply = site.Call(Push());
    ASSERT_TRUE(reply);
    if (reply->kind() == Kind::kError) continue;  // on a busy machine it may take too long
    ASSERT_EQ(replica_->Ask({"LLEN", "list"})->integer, reply->root().integer());
  }
  EXPECT_TRUE(Answered(site, Push()));
}

TEST_F(ReplicasTest, WritesOfOneTurnShareAWaitAndKeepTheirOrder) {
  ClientSite site(options_);
  EXPECT_EQ(site.Ask("PING"), "PONG");
  constexpr size_t kCommands = 1'000;
  const auto push_all = [&] {
    std::vector<int64_t> answers;
    std::promise<void> all;
    site.Run([&] {
      for (size_t i = 0; i < kCommands; ++i) {
        site.client().Call(Push(), [&](const Result<Reply>& reply) {
          answers.push_back(reply && reply->kind() != Kind::kError ? reply->root().integer() : -1);
          if (answers.size() == kCommands) all.set_value();
        });
      }
    });
    all.get_future().wait();
    return answers;
  };
  // On a busy machine the replica may take longer than it may, and some are unknown: then all are tried again.
  std::vector<int64_t> expected;
  std::vector<int64_t> answers;
  int64_t waits = 0;
  EXPECT_TRUE(real::WaitFor(Millis(20'000), [&] {
    expected.resize(kCommands);
    std::iota(expected.begin(), expected.end(), master_->Ask({"LLEN", "list"})->integer + 1);
    waits = Waits();
    answers = push_all();
    waits = Waits() - waits;
    return std::ranges::count(answers, -1) == 0;
  }));
  EXPECT_EQ(answers, expected);
  EXPECT_LE(waits, 3);
}

TEST_F(ReplicasTest, CommandsThatNobodyReliesOnDoNotWait) {
  ClientSite site(options_);
  const Script get("get", "return redis.call('GET', KEYS[1])");
  replica_->Pause();
  EXPECT_EQ(Shown(site.Call(Command(get, 1, "k"))), "nil");
  EXPECT_EQ(site.Ask("SET", {"k", "v"}), "OK");
  EXPECT_EQ(Waits(), 0);
  replica_->Continue();
}

TEST_F(ReplicasTest, AWriteThatTheReplicaDoesNotHaveInTimeIsUnknown) {
  ClientSite site(options_);
  ASSERT_TRUE(Answered(site, Push()));
  replica_->Pause();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Shown(site.Call(Push())).starts_with("!UNREPLICATED Redis at "));
    EXPECT_EQ(site.Ask("GET", {"k"}), "nil") << "others are answered";
  }
  replica_->Continue();
  EXPECT_TRUE(Answered(site, Push()));
}

TEST_F(ReplicasTest, AnErrorIsAnsweredAsItIs) {
  ClientSite site(options_);
  EXPECT_EQ(site.Ask("SET", {"list", "v"}), "OK");
  EXPECT_TRUE(Shown(site.Call(Push())).starts_with("!WRONGTYPE"));
}

TEST_F(ReplicasTest, CloseAnswersWhatIsHeld) {
  ClientSite site(options_);
  ASSERT_TRUE(Answered(site, Push()));
  const int64_t before = master_->Ask({"LLEN", "list"})->integer;
  replica_->Pause();
  std::atomic<int> answers = 0;
  site.Run([&] {
    for (int i = 0; i < 10; ++i) {
      site.client().Call(Push(), [&](const Result<Reply>& reply) {
        ++answers;
        EXPECT_TRUE(!reply || reply->kind() == Kind::kError);
      });
    }
  });
  ASSERT_TRUE(real::WaitFor(Millis(5'000), [&] { return master_->Ask({"LLEN", "list"})->integer == before + 10; }));
  site.Run([&] { site.client().Close(); });
  EXPECT_EQ(answers.load(), 10);
  replica_->Continue();
}

TEST_F(ReplicasTest, ALostConnectionMakesWhatIsHeldUnknown) {
  ClientSite site(options_);
  ASSERT_TRUE(Answered(site, Push()));
  const int64_t before = master_->Ask({"LLEN", "list"})->integer;
  replica_->Pause();
  std::promise<std::string> answer;
  site.Run([&] { site.client().Call(Push(), [&](const Result<Reply>& reply) { answer.set_value(Shown(reply)); }); });
  ASSERT_TRUE(real::WaitFor(Millis(5'000), [&] { return master_->Ask({"LLEN", "list"})->integer == before + 1; }));
  ASSERT_TRUE(master_->Ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}));
  const std::string shown = answer.get_future().get();
  EXPECT_TRUE(shown.find("unknown") != std::string::npos || shown.starts_with("!UNREPLICATED")) << shown;
  replica_->Continue();
  EXPECT_TRUE(Answered(site, Push()));
}

}  // namespace
}  // namespace tocsin::redis
