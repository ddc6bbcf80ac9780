// The whole outbox with real threads: its own, two shards with stores in memory that can be made to fail, and a real
// MariaDB. TSan watches.
#include "outbox/outbox.h"

#include <atomic>
#include <future>
#include <latch>
#include <utility>

#include "clients/mysql/mysql_test_site.h"
#include "clients/mysql/schema.h"
#include "core/test_node.h"
#include "net/asio_loop.h"

namespace tocsin::outbox {
namespace {

constexpr size_t kShards = 2;
constexpr Millis kSoon{30'000};

class OutboxTest : public mysql::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    if (connection_ == nullptr) return;
    ASSERT_TRUE(mysql::Migrate(*connection_));
    std::vector<Service::ShardParts> parts;
    for (size_t i = 0; i < kShards; ++i) {
      loops_.push_back(std::make_unique<net::AsioLoop>(clock_));
      stores_.push_back(std::make_unique<MemoryStore>(loops_.back().get()));
      faulty_.push_back(std::make_unique<FaultyStore>(*stores_.back()));
      parts.push_back({loops_[i].get(), faulty_[i].get()});
    }
    service_ = std::make_unique<Service>(std::move(parts), clock_, metrics_, limits_);
    service_->Start();
    for (auto& loop : loops_) threads_.emplace_back([&loop] { loop->Run(); });
  }
  void TearDown() override {
    StopOutbox();
    if (service_ == nullptr) return;
    std::latch ended(1);
    loops_[0]->Post([&] { service_->Stop(*loops_[0], [&] { ended.count_down(); }); });
    ended.wait();
    for (auto& loop : loops_) loop->Stop();
    threads_.clear();
  }

  void StartOutbox() {
    outbox_ = std::make_unique<Outbox>(Outbox::Parts{.mysql = options_,
                                                     .rules = {.limits = service_->limits(), .identity = {}},
                                                     .service = *service_,
                                                     .loops = {loops_[0].get(), loops_[1].get()},
                                                     .clock = clock_,
                                                     .budget = budget_,
                                                     .metrics = metrics_});
    const Status checked = outbox_->Check();
    ASSERT_TRUE(checked) << checked.error().message;
    outbox_->Start();
  }
  void StopOutbox() {
    if (outbox_ == nullptr) return;
    std::latch stopped(1);
    outbox_->Stop([&] { stopped.count_down(); });
    stopped.wait();
    outbox_.reset();
  }

  /// From now on every call to a store fails like this; nothing: none does.
  void Fail(std::optional<Code> code) {
    std::latch done(kShards);
    for (size_t i = 0; i < kShards; ++i) {
      loops_[i]->Post([&, i] {
        faulty_[i]->fail = code;
        done.count_down();
      });
    }
    done.wait();
  }

  void Insert(int64_t rows) {
    const mysql::Value values[] = {rows};
    ASSERT_TRUE(
        connection_->Run("INSERT INTO tocsin_outbox (topic, payload, delay_ms) SELECT CONCAT('t', seq % 3), seq, "
                         "3600000 FROM seq_1_to_100000 LIMIT ?",
                         values));
  }
  /// Submits that the stores hold until Answer; or none any more.
  void HoldSubmits(bool hold) {
    std::latch done(kShards);
    for (size_t i = 0; i < kShards; ++i) {
      loops_[i]->Post([&, i] {
        faulty_[i]->held_submits = hold ? &held_[i] : nullptr;
        done.count_down();
      });
    }
    done.wait();
  }
  /// How many submits the stores have had.
  size_t Submits() {
    std::atomic<size_t> submits = 0;
    std::latch done(kShards);
    for (size_t i = 0; i < kShards; ++i) {
      loops_[i]->Post([&, i] {
        submits += faulty_[i]->submits;
        done.count_down();
      });
    }
    done.wait();
    return submits;
  }
  /// The stores answer what they have held.
  void Answer() {
    std::latch done(kShards);
    for (size_t i = 0; i < kShards; ++i) {
      loops_[i]->Post([&, i] {
        for (Task& answer : std::exchange(held_[i], {})) answer();
        done.count_down();
      });
    }
    done.wait();
  }
  /// Takes jobs of the topic, as a consumer does, and acknowledges them; how many there were.
  size_t Consume(const std::string& topic) {
    std::promise<size_t> consumed;
    loops_[0]->Post([&] {
      service_->Reserve(*loops_[0], {topic, 1'000, Millis(0), Millis(0)}, [&](Result<JobBatch> jobs) {
        if (!jobs || jobs->jobs.empty()) return consumed.set_value(0);
        SettleRequest request{.topic = topic, .settlements = {}, .bytes = {}};
        for (const Token& token : LeasesOf(topic, *jobs).tokens) request.settlements.push_back({.token = token});
        service_->Settle(*loops_[0], std::move(request),
                         [&, count = jobs->jobs.size()](const Result<std::vector<SettleOutcome>>& done) {
                           consumed.set_value(done ? count : 0);
                         });
      });
    });
    return consumed.get_future().get();
  }
  /// How often somebody has waited for a lock on a row.
  int64_t LockWaits() {
    return Ask(
        "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.global_status WHERE VARIABLE_NAME = "
        "'Innodb_row_lock_waits'");
  }
  /// Ends the session that has the turn; whether one had it.
  bool EndTurn() {
    const int64_t session = Ask("SELECT IS_USED_LOCK(CONCAT('tocsin_outbox.', SHA1(DATABASE())))");
    if (session > 0) Run(fmt::format("KILL {}", session));
    return session > 0;
  }
  int64_t Waiting() { return Ask("SELECT COUNT(*) FROM tocsin_outbox WHERE state = 0"); }
  bool Emptied() {
    return real::WaitFor(kSoon, [this] { return Waiting() == 0; });
  }
  uint64_t Rows(const std::string& outcome) {
    return metrics_.GetCounter("tocsin_outbox_rows_total", "", {{"outcome", outcome}})->Value();
  }

  Limits limits_;
  RealClock clock_;
  metrics::Registry metrics_;
  net::Budget budget_{64 << 20, metrics_};
  std::vector<std::unique_ptr<net::AsioLoop>> loops_;
  std::vector<std::unique_ptr<MemoryStore>> stores_;
  std::vector<std::unique_ptr<FaultyStore>> faulty_;
  std::array<std::vector<Task>, kShards> held_;  // each is of its shard's thread
  std::unique_ptr<Service> service_;
  std::vector<std::jthread> threads_;
  std::unique_ptr<Outbox> outbox_;
};

TEST_F(OutboxTest, EveryRowIsOneJob) {
  Insert(2'000);
  StartOutbox();
  ASSERT_TRUE(Emptied());
  StopOutbox();
  EXPECT_EQ(Rows("accepted"), 2'000U);
  EXPECT_EQ(Rows("duplicate"), 0U);
  EXPECT_EQ(budget_.bytes(), 0U);
}

TEST_F(OutboxTest, RowsStayWhileTheStoreTakesNone) {
  StartOutbox();
  const auto active = metrics_.GetGauge("tocsin_outbox_active", "");
  for (const Code code : {Code::kUnavailable, Code::kStorageFull, Code::kOverloaded}) {
    EXPECT_TRUE(real::WaitFor(kSoon, [&] { return active->Value() == 1; }));
    Fail(code);
    Insert(100);
    EXPECT_TRUE(real::WaitFor(kSoon, [&] { return active->Value() == 0; })) << "others may try";
    EXPECT_EQ(Waiting(), 100);
    Fail(std::nullopt);
    ASSERT_TRUE(Emptied());
  }
  StopOutbox();
  EXPECT_EQ(Rows("accepted"), 300U);
  EXPECT_EQ(Rows("refused"), 0U);
}

TEST_F(OutboxTest, RowsOfAnEarlierLifeAreTheSameJobs) {
  Insert(500);
  Run("CREATE TABLE copy AS SELECT * FROM tocsin_outbox");
  StartOutbox();
  ASSERT_TRUE(Emptied());
  Run("INSERT INTO tocsin_outbox SELECT * FROM copy");  // as if they had not been removed
  ASSERT_TRUE(Emptied());
  StopOutbox();
  EXPECT_EQ(Rows("accepted"), 500U);
  EXPECT_EQ(Rows("duplicate"), 500U);
}

TEST_F(OutboxTest, ARemovalThatFailsIsRepeatedWithoutTheJobs) {
  Run("INSERT INTO tocsin_outbox (topic, payload) SELECT 'orders', seq FROM seq_1_to_100");
  auto other = mysql::Connection::Open(options_);
  ASSERT_TRUE(other);
  size_t consumed = 0;
  ASSERT_TRUE((*other)->Together([&]() -> Status {
    TOCSIN_TRY((*other)->AskNumber("SELECT id FROM tocsin_outbox WHERE id = 50 FOR UPDATE"));
    const int64_t before = LockWaits();
    StartOutbox();
    EXPECT_TRUE(real::WaitFor(kSoon, [&] { return (consumed += Consume("orders")) >= 100; }));
    EXPECT_TRUE(real::WaitFor(kSoon, [&] { return LockWaits() >= before + 3; })) << "the removal is tried again";
    EXPECT_TRUE(EndTurn());
    EXPECT_TRUE(real::WaitFor(kSoon, [&] { return LockWaits() >= before + 5; })) << "also by the next session";
    return {};
  }));
  ASSERT_TRUE(Emptied());
  consumed += Consume("orders");
  StopOutbox();
  EXPECT_EQ(consumed, 100U);
  EXPECT_EQ(Rows("accepted"), 100U);
  EXPECT_EQ(Rows("duplicate"), 0U);
}

TEST_F(OutboxTest, ANodeThatHasLostItsTurnHandsNothingMoreOver) {
  Run("INSERT INTO tocsin_outbox (op, topic, job_id, delay_ms) VALUES ('submit', 'orders', 'A-1', 3600000), "
      "('cancel', 'orders', 'A-1', NULL)");
  HoldSubmits(true);
  StartOutbox();
  ASSERT_TRUE(real::WaitFor(kSoon, [&] { return Submits() == 1; }));
  ASSERT_TRUE(EndTurn());
  ASSERT_EQ(Ask("SELECT GET_LOCK(CONCAT('tocsin_outbox.', SHA1(DATABASE())), 10)"), 1);  // another node's turn
  HoldSubmits(false);
  Answer();
  ASSERT_TRUE(real::WaitFor(kSoon, [&] { return Waiting() < 2; }));
  EXPECT_EQ(Waiting(), 1) << "the cancel is the other node's to read";
  EXPECT_EQ(Rows("cancelled"), 0U);
  EXPECT_EQ(Ask("SELECT RELEASE_LOCK(CONCAT('tocsin_outbox.', SHA1(DATABASE())))"), 1);
  ASSERT_TRUE(Emptied());
  StopOutbox();
  EXPECT_EQ(Rows("accepted"), 1U);
  EXPECT_EQ(Rows("cancelled"), 1U);
}

TEST_F(OutboxTest, RowsOfOneKeyAreStoredInTheirOrder) {
  Run("INSERT INTO tocsin_outbox (topic, job_key, payload) SELECT 'orders', 'k', seq FROM seq_1_to_300");
  Run("INSERT INTO tocsin_outbox (topic, payload) VALUES ('carts', 'x')");
  HoldSubmits(true);
  StartOutbox();
  // More than one call takes, so the second one waits for the answer to the first; other topics do not.
  ASSERT_TRUE(real::WaitFor(kSoon, [&] { return Submits() >= 2; }));
  EXPECT_EQ(Submits(), 2U);
  EXPECT_EQ(Submits(), 2U);
  HoldSubmits(false);
  Answer();
  ASSERT_TRUE(Emptied());
  StopOutbox();
  EXPECT_EQ(Rows("accepted"), 301U);
}

class FewTopicsTest : public OutboxTest {
 protected:
  FewTopicsTest() { limits_.topics = 1; }
};

TEST_F(FewTopicsTest, RowsOfManyTopicsThatAreFullHoldUpNoOther) {
  Run("INSERT INTO tocsin_outbox (topic, payload) VALUES ('orders', 'first')");
  StartOutbox();
  ASSERT_TRUE(Emptied());
  auto other = mysql::Connection::Open(options_);
  ASSERT_TRUE(other);
  ASSERT_TRUE((*other)->Together([&]() -> Status {
    TOCSIN_TRY((*other)->Run("INSERT INTO tocsin_outbox (topic, job_id, delay_ms) VALUES ('orders', 'A-1', 3600000)"));
    Run("INSERT INTO tocsin_outbox (topic, payload) SELECT CONCAT('order-', seq), seq FROM seq_1_to_1500");
    Run("INSERT INTO tocsin_outbox (topic, payload) VALUES ('orders', 'second')");
    EXPECT_TRUE(real::WaitFor(kSoon, [&] { return Waiting() == 1'500; }));
    return {};
  }));
  Run("INSERT INTO tocsin_outbox (op, topic, job_id) VALUES ('cancel', 'orders', 'A-1')");
  EXPECT_TRUE(real::WaitFor(kSoon, [&] { return Waiting() == 1'500; }));
  StopOutbox();
  EXPECT_EQ(Rows("accepted"), 3U);
  EXPECT_EQ(Rows("cancelled"), 1U);
}

TEST_F(OutboxTest, AnOutboxThatCannotBeUsedIsRefusedAndOneThatIsAwayIsNot) {
  Run("ALTER TABLE tocsin_outbox DROP COLUMN topic");
  const Outbox::Parts parts{.mysql = options_,
                            .rules = {.limits = service_->limits(), .identity = {}},
                            .service = *service_,
                            .loops = {loops_[0].get()},
                            .clock = clock_,
                            .budget = budget_,
                            .metrics = metrics_};
  EXPECT_EQ(Outbox(parts).Check().error().code, Code::kUnsupportedFormat);
  Run("ALTER TABLE tocsin_outbox ADD COLUMN topic varchar(256) NOT NULL");
  for (const char* privilege : {"UPDATE", "DELETE"}) {
    Run("CREATE OR REPLACE USER 'poor'@'%' IDENTIFIED BY 'wire-9f2e-horse'");
    Run("GRANT SELECT ON shop.* TO 'poor'@'%'");
    Run(fmt::format("GRANT {} ON shop.tocsin_outbox TO 'poor'@'%'", privilege));
    Outbox::Parts poor = parts;
    poor.mysql.username = "poor";
    const Status checked = Outbox(poor).Check();
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Code::kForbidden);
  }
  Outbox::Parts away = parts;
  away.mysql.port = 1;
  EXPECT_TRUE(Outbox(away).Check());
}

}  // namespace
}  // namespace tocsin::outbox
