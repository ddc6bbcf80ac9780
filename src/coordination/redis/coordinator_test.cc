#include "coordination/redis/coordinator.h"

#include <charconv>

#include "net/asio_loop.h"
#include "real/redis_servers.h"
#include "spi/contract/coordinator_contract.h"

namespace tocsin {
namespace {

constexpr Millis kSession{2'000};
constexpr const char* kLease = "{test:members}:lease";
constexpr const char* kRecord = "{test:members}:record";
constexpr const char* kVersion = "{test:members}:version";

redis::Options Connect(uint16_t port) {
  redis::Options options;
  options.endpoints = {{.host = "127.0.0.1", .port = port}};
  return options;
}

class RedisSite final : public CoordinatorSite {
 public:
  explicit RedisSite(uint16_t port)
      : coordinator_(
            RedisCoordinator::Make(loop_.io(), clock_, Connect(port), metrics_, {.prefix = "test", .session = kSession})
                .value()) {}

  Coordinator& coordinator() override { return *coordinator_; }
  void Post(Task task) override { loop_.Post(std::move(task)); }
  void Run() override { loop_.Run(); }

 private:
  RealClock clock_;
  net::AsioLoop loop_{clock_};
  metrics::Registry metrics_;
  std::unique_ptr<RedisCoordinator> coordinator_;
};

class RedisWorld final : public CoordinatorWorld {
 public:
  explicit RedisWorld(std::unique_ptr<real::RedisServer> server) : server_(std::move(server)) {}

  static Result<std::unique_ptr<CoordinatorWorld>> Make() {
    if (const std::string why = real::WhyNoRedis(); !why.empty()) return Fail(Code::kUnavailable, "{}", why);
    auto server = real::RedisServer::Make();
    if (!server) return Fail(Code::kInternal, "{}", server.error().message);
    return std::make_unique<RedisWorld>(std::move(*server));
  }

  real::RedisServer& server() { return *server_; }
  Millis session() const override { return kSession; }
  uint16_t port() const override { return server_->port(); }
  std::unique_ptr<CoordinatorSite> MakeSite(uint16_t port) override { return std::make_unique<RedisSite>(port); }
  void KillServer() override { server_->Kill(); }
  Status StartServer() override { return server_->Start(); }
  void PauseServer() override { server_->Pause(); }
  void ContinueServer() override { server_->Continue(); }

 private:
  std::unique_ptr<real::RedisServer> server_;
};

INSTANTIATE_TEST_SUITE_P(Redis, CoordinatorContract, testing::Values(WorldMaker(&RedisWorld::Make)));
INSTANTIATE_TEST_SUITE_P(Redis, SharedCoordinatorContract, testing::Values(WorldMaker(&RedisWorld::Make)));

/// What is Redis' own: the list, as others may find or damage it.
class RedisRoster : public CoordinatorContract {
 protected:
  std::string Ask(const std::vector<std::string>& command) {
    const auto answer = static_cast<RedisWorld&>(*world_).server().Ask(command);
    return answer ? answer->Text() : answer.error().message;
  }
  int64_t Number(const std::vector<std::string>& command) {
    const std::string text = Ask(command);
    int64_t value = -1;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  /// Redis' clock.
  int64_t NowMs() {
    const auto answer = static_cast<RedisWorld&>(*world_).server().Ask({"TIME"});
    return std::stoll(answer->elements.at(0).text) * 1000 + std::stoll(answer->elements.at(1).text) / 1000;
  }
};

INSTANTIATE_TEST_SUITE_P(Redis, RedisRoster, testing::Values(WorldMaker(&RedisWorld::Make)));

TEST_P(RedisRoster, ANodeThatSomebodyRemovedSaysSoAndJoinsAnew) {
  const std::vector<Node*> nodes = JoinAll({"a", "b"});
  const int64_t version = Number({"GET", kVersion});
  EXPECT_EQ(Ask({"ZREM", kLease, "a"}), "1");
  const std::optional<Report> lost = (*nodes[0])->Next(Now() + kSoon);
  ASSERT_TRUE(lost);
  EXPECT_FALSE(lost->members.joined) << lost->text;
  EXPECT_EQ(IdsOf(lost->members), Ids{"b"});
  EXPECT_TRUE(Sees(*nodes[0], {"a", "b"}));
  EXPECT_TRUE(Sees(*nodes[1], {"a", "b"}));
  EXPECT_GT(Number({"GET", kVersion}), version);
}

TEST_P(RedisRoster, AllComeBackAfterTheDataWasLost) {
  const std::vector<Node*> nodes = JoinAll({"a", "b", "c"});
  EXPECT_EQ(Ask({"FLUSHALL"}), "OK");
  for (Node* node : nodes) EXPECT_TRUE(Loses(*node, kSoon));
  for (Node* node : nodes) EXPECT_TRUE(Sees(*node, {"a", "b", "c"}));
}

// A node looks when a lease ends, not only with its next beat: these three end between two beats.
TEST_P(RedisRoster, ALeaseThatRanOutIsRemovedWithItsRecord) {
  const int64_t now_ms = NowMs();
  int64_t end_ms = now_ms + 1'000;
  for (const char* ghost : {"ghost-1", "ghost-2", "ghost-3"}) {
    Ask({"ZADD", kLease, std::to_string(end_ms), ghost});
    Ask({"HSET", kRecord, ghost, "http=x\n"});
    end_ms += kSession.count() / 3 / 3;
  }
  Node& a = Join("a");
  EXPECT_TRUE(Sees(a, {"a", "ghost-1", "ghost-2", "ghost-3"}));
  EXPECT_TRUE(Sees(a, {"a", "ghost-2", "ghost-3"}));
  EXPECT_TRUE(Sees(a, {"a", "ghost-3"}));
  EXPECT_TRUE(Sees(a, {"a"}));
  EXPECT_EQ(Ask({"HKEYS", kRecord}), "[a]");
}

// Redis' clock was an hour ahead, and was set right: who died meanwhile is not a member for an hour.
TEST_P(RedisRoster, ALeaseFromTheFutureIsCut) {
  const int64_t now_ms = NowMs();
  Ask({"ZADD", kLease, std::to_string(now_ms + 3'600'000), "ghost"});
  Node& a = Join("a");
  ASSERT_TRUE(Sees(a, {"a", "ghost"}));
  EXPECT_LE(Number({"ZSCORE", kLease, "ghost"}), NowMs() + RedisCoordinator::kSessionMax.count());
  EXPECT_GT(Number({"ZSCORE", kLease, "ghost"}), now_ms);
}

TEST_P(RedisRoster, ARedisWithoutMemoryKeepsItsMembers) {
  Node& a = Join("a");
  EXPECT_TRUE(Sees(a, {"a"}));
  EXPECT_EQ(Ask({"CONFIG", "SET", "maxmemory", "1"}), "OK");
  EXPECT_TRUE(Ask({"SET", "k", "v"}).starts_with("OOM"));
  EXPECT_TRUE(Sees(Join("b"), {"a", "b"}));
  EXPECT_TRUE(Sees(a, {"a", "b"}));
  const int64_t end_ms = Number({"ZSCORE", kLease, "a"});
  const auto until = Now() + kSoon;
  while (Number({"ZSCORE", kLease, "a"}) == end_ms) ASSERT_LT(Now(), until) << "its lease is not renewed";
}

TEST_P(RedisRoster, AMemberWithoutARecordIsAMemberAllTheSame) {
  Ask({"ZADD", kLease, std::to_string(NowMs() + 30'000), "strange"});
  EXPECT_TRUE(Sees(Join("a"), {"a", "strange"}));
}

TEST_P(RedisRoster, LeaveTakesEverythingWithIt) {
  Node& a = Join("a");
  ASSERT_TRUE(Sees(a, {"a"}));
  ASSERT_TRUE(Left(a));
  EXPECT_EQ(Ask({"EXISTS", kLease, kRecord}), "0");
}

TEST_P(RedisRoster, CostsLittleWhileNothingChanges) {
  const std::vector<Node*> nodes = JoinAll({"a", "b", "c"});
  Ask({"CONFIG", "RESETSTAT"});
  constexpr Millis kTime = 2 * kSession;
  StaysQuiet(*nodes[0], kTime);
  const std::string stats = Ask({"INFO", "commandstats"});
  const auto calls = [&stats](std::string_view name) {
    const std::string field = real::InfoField(stats, name);  // calls=12,usec=...
    return field.starts_with("calls=") ? std::stoll(field.substr(6)) : 0;
  };
  // Three beats a session for each of three nodes, and one more or less; as many pings of the subscription again,
  // twice.
  constexpr int64_t kThirds = 3 * kTime / kSession;
  EXPECT_GE(calls("cmdstat_evalsha"), 3 * (kThirds - 2));
  EXPECT_LE(calls("cmdstat_evalsha"), 3 * (kThirds + 1));
  EXPECT_LE(calls("cmdstat_ping"), 3 * (2 * kThirds + 1));
  EXPECT_EQ(calls("cmdstat_eval"), 0);
}

TEST(RedisCoordinator, ASessionHasBounds) {
  RealClock clock;
  net::AsioLoop loop(clock);
  metrics::Registry metrics;
  for (const Millis session : {Millis(0), Millis(999), Millis(60'001)}) {
    const auto made = RedisCoordinator::Make(loop.io(), clock, Connect(1), metrics, {.session = session});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::kInvalidArgument);
    EXPECT_EQ(made.error().field, "session");
  }
  EXPECT_TRUE(RedisCoordinator::Make(loop.io(), clock, Connect(1), metrics, {.session = Millis(60'000)}));
}

}  // namespace
}  // namespace tocsin
