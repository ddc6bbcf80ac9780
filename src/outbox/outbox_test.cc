// The whole outbox with real threads: its own, two shards with stores in memory that can be made to fail, and a real
// MariaDB. TSan watches.
#include "outbox/outbox.h"

#include <latch>

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
    service_ = std::make_unique<Service>(std::move(parts), clock_, metrics_);
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
  int64_t Waiting() { return Ask("SELECT COUNT(*) FROM tocsin_outbox WHERE state = 0"); }
  bool Emptied() {
    return real::WaitFor(kSoon, [this] { return Waiting() == 0; });
  }
  uint64_t Rows(const std::string& outcome) {
    return metrics_.GetCounter("tocsin_outbox_rows_total", "", {{"outcome", outcome}})->Value();
  }

  RealClock clock_;
  metrics::Registry metrics_;
  net::Budget budget_{64 << 20, metrics_};
  std::vector<std::unique_ptr<net::AsioLoop>> loops_;
  std::vector<std::unique_ptr<MemoryStore>> stores_;
  std::vector<std::unique_ptr<FaultyStore>> faulty_;
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
  Outbox::Parts away = parts;
  away.mysql.port = 1;
  EXPECT_TRUE(Outbox(away).Check());
}

}  // namespace
}  // namespace tocsin::outbox
