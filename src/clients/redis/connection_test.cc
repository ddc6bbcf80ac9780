// The client and one server that works: order, batching, scripts, limits, the end.
#include "clients/redis/client_test_site.h"

namespace tocsin::redis {
namespace {

class SingleTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = real::WhyNoRedis(); !why.empty()) GTEST_SKIP() << why;
    auto made = real::RedisServer::Make({.append_only = false});
    ASSERT_TRUE(made) << made.error().message;
    server_ = std::move(*made);
  }
  Options Here() const { return At(Mode::kSingle, {server_->port()}); }
  int64_t Info(std::string_view field) {
    return std::stoll("0" + real::InfoField(server_->Ask({"INFO"}).value().text, field));
  }

  std::unique_ptr<real::RedisServer> server_;
};

TEST_F(SingleTest, AnswersOfEveryKindComeBack) {
  ClientSite site(Here());
  EXPECT_EQ(site.Ask("SET", {"k", "v"}), "OK");
  EXPECT_EQ(site.Ask("GET", {"k"}), "v");
  EXPECT_EQ(site.Ask("GET", {"none"}), "nil");
  EXPECT_EQ(site.Ask("RPUSH", {"l", "a", "b"}), "2");
  EXPECT_EQ(site.Ask("LRANGE", {"l", "0", "-1"}), "[a b]");
  EXPECT_EQ(site.Ask("INCR", {"l"}), "!WRONGTYPE Operation against a key holding the wrong kind of value");
  EXPECT_EQ(site.Ask("SET", {"big", std::string(5'000'000, 'x')}), "OK");
  EXPECT_EQ(site.Ask("GET", {"big"}), std::string(5'000'000, 'x'));
}

TEST_F(SingleTest, TenThousandCommandsOfOneTurnAreAnsweredInOrder) {
  ClientSite site(Here());
  constexpr int kCommands = 10'000;
  std::vector<int64_t> answers;
  std::promise<void> all;
  site.Run([&] {
    for (int i = 0; i < kCommands; ++i) {
      site.client().Call(Command("INCR", "k"), [&](const Result<Reply>& reply) {
        answers.push_back(reply ? reply->root().integer() : -1);
        if (answers.size() == kCommands) all.set_value();
      });
    }
    EXPECT_TRUE(answers.empty());  // never within the call
  });
  all.get_future().wait();
  for (int i = 0; i < kCommands; ++i) ASSERT_EQ(answers[static_cast<size_t>(i)], i + 1);
  EXPECT_EQ(site.Count("tocsin_redis_commands_total", {{"outcome", "answered"}}), kCommands);
}

TEST_F(SingleTest, CommandsOfOneTurnLeaveInOneWrite) {
  ClientSite site(Here());
  EXPECT_EQ(site.Ask("PING"), "PONG");
  const int64_t before = Info("total_reads_processed");
  std::promise<void> last;
  site.Run([&] {
    for (int i = 0; i < 100; ++i) site.client().Call(Command("INCR", "k"), [](const Result<Reply>&) {});
    site.client().Call(Command("INCR", "k"), [&](const Result<Reply>&) { last.set_value(); });
  });
  last.get_future().wait();
  EXPECT_LE(Info("total_reads_processed") - before, 3);  // the write, and the two questions
}

TEST_F(SingleTest, AScriptIsSentWholeOnceAndAgainAfterAFlush) {
  ClientSite site(Here());
  const Script push("push", "return redis.call('RPUSH', KEYS[1], ARGV[1])");
  int64_t length = 0;
  const auto run = [&](int calls) {
    std::promise<void> last;
    site.Run([&] {
      for (int i = 0; i < calls; ++i) {
        Command command(push, 1, "list");
        command.Add(length + i);
        site.client().Call(std::move(command), [&, i](const Result<Reply>& reply) {
          EXPECT_EQ(Shown(reply), std::to_string(length + i + 1));
          if (i + 1 == calls) last.set_value();
        });
      }
    });
    last.get_future().wait();
    length += calls;
  };
  run(100);
  EXPECT_EQ(server_->Ask({"INFO", "commandstats"}).value().text.contains("cmdstat_eval:calls=1,"), true);
  ASSERT_TRUE(server_->Ask({"SCRIPT", "FLUSH"}));
  run(100);
  // In order, although the first hundred after the flush were sent in vain at first.
  const auto list = server_->Ask({"LRANGE", "list", "0", "-1"}).value();
  ASSERT_EQ(list.elements.size(), 200);
  for (size_t i = 0; i < 200; ++i) EXPECT_EQ(list.elements[i].text, std::to_string(i));
  EXPECT_EQ(site.metrics().GetHistogram("tocsin_redis_script_seconds", "", {{"script", "push"}})->Read().count, 300);
}

TEST_F(SingleTest, AScriptThatFailsIsAnsweredAsRedisSaysIt) {
  ClientSite site(Here());
  const Script broken("broken", "return redis.error_reply('OWN words')");
  EXPECT_EQ(Shown(site.Call(Command(broken, 1, "k"))), "!OWN words");
}

TEST_F(SingleTest, MoreThanTheLimitIsRefusedAndTheRestIsNot) {
  Options options = Here();
  options.pending_bytes_max = 100'000;
  ClientSite site(options);
  std::vector<std::string> answers;
  std::promise<void> all;
  site.Run([&] {
    for (int i = 0; i < 3; ++i) {
      Command set("SET", "k");
      set.Add(std::string(60'000, 'x'));
      site.client().Call(std::move(set), [&](const Result<Reply>& reply) {
        answers.push_back(Shown(reply));
        if (answers.size() == 3) all.set_value();
      });
    }
    EXPECT_TRUE(answers.empty());
  });
  all.get_future().wait();
  std::ranges::sort(answers);
  EXPECT_EQ(answers[0], "OK");
  EXPECT_EQ(answers[1], "overloaded: not sent: over 100000 bytes of commands are under way");
  EXPECT_EQ(site.Ask("SET", {"k", std::string(60'000, 'y')}), "OK");  // there is room again
}

TEST_F(SingleTest, MessagesAreHeardAndUpIsSaid) {
  ClientSite site(Here());
  ASSERT_TRUE(site.WaitForUp(0));
  const int before = site.ups();
  Listening listening(site, "news");
  EXPECT_TRUE(site.WaitForUp(before));  // the subscription is there
  EXPECT_TRUE(listening.Hears());
  Listening second(site, "more");
  EXPECT_TRUE(second.Hears());
  EXPECT_TRUE(listening.Hears());
  site.Run([&] { site.client().Unsubscribe("news"); });
  const int heard = listening.heard();
  EXPECT_EQ(site.Ask("PUBLISH", {"news", "x"}), "0") << "Redis knows";
  EXPECT_TRUE(second.Hears());
  EXPECT_EQ(listening.heard(), heard);
}

TEST_F(SingleTest, EachMasterIsTheOne) {
  ClientSite site(Here());
  std::promise<std::string> seen;
  site.Run([&] {
    site.client().CallEach(Command("PING"), [&](const auto& all) {
      ASSERT_TRUE(all);
      ASSERT_EQ(all->size(), 1);
      seen.set_value(all->front().first.Text() + " " + Shown(all->front().second.root()));
    });
  });
  EXPECT_EQ(seen.get_future().get(), fmt::format("127.0.0.1:{} PONG", server_->port()));
  const auto health = site.Health();
  ASSERT_EQ(health.size(), 1);
  EXPECT_TRUE(health[0].connected);
  EXPECT_EQ(health[0].role, "master");
  EXPECT_EQ(health[0].state, "connected");
}

TEST_F(SingleTest, CloseAnswersAllAndNothingRunsAfterIt) {
  ClientSite site(Here());
  EXPECT_EQ(site.Ask("PING"), "PONG");
  int answers = 0;
  bool late = false;
  site.Run([&] {
    for (int i = 0; i < 1'000; ++i) {
      site.client().Call(Command("INCR", "k"), [&](const Result<Reply>& reply) {
        ++answers;
        EXPECT_FALSE(reply);
        EXPECT_EQ(reply.error().code, Code::kShuttingDown);
      });
    }
    site.client().Close();
    EXPECT_EQ(answers, 1'000);
    site.client().Close();
    site.client().Call(Command("PING"), [&](const Result<Reply>& reply) { late = !reply; });
    EXPECT_FALSE(late);
  });
  site.Run([&] { EXPECT_TRUE(late); });
  EXPECT_EQ(answers, 1'000);
}

TEST_F(SingleTest, AnAnswerMayCloseTheClient) {
  ClientSite site(Here());
  int answers = 0;
  std::promise<void> closed;
  site.Run([&] {
    for (int i = 0; i < 1'000; ++i) {
      site.client().Call(Command("INCR", "k"), [&, i](const Result<Reply>& reply) {
        ++answers;
        EXPECT_EQ(reply.has_value(), i <= 500) << i;
        if (i != 500) return;
        site.client().Close();
        closed.set_value();
      });
    }
  });
  closed.get_future().wait();
  site.Run([&] { EXPECT_EQ(answers, 1'000); });
}

TEST_F(SingleTest, AnAnswerMayCallAgain) {
  ClientSite site(Here());
  std::promise<void> done;
  std::function<void(int)> next = [&](int left) {
    site.client().Call(Command("INCR", "k"), [&, left](const Result<Reply>& reply) {
      EXPECT_TRUE(reply);
      left == 0 ? done.set_value() : next(left - 1);
    });
  };
  site.Run([&] { next(1'000); });
  done.get_future().wait();
  EXPECT_EQ(site.Ask("GET", {"k"}), "1001");
}

TEST_F(SingleTest, ItMayEndWhileItConnects) {
  boost::asio::io_context io;
  metrics::Registry metrics;
  int answers = 0;
  {
    auto client = Client::Make(io, Here(), metrics).value();
    client->Call(Command("PING"), [&](const Result<Reply>&) { ++answers; });
    client->Subscribe("c", [](std::string_view, std::string_view) {});
    io.poll();
  }
  EXPECT_EQ(answers, 1);
  io.run();
}

}  // namespace
}  // namespace tocsin::redis
