#include "outbox/table.h"

#include <utility>

#include <gmock/gmock.h>

#include "clients/mysql/mysql_test_site.h"
#include "clients/mysql/schema.h"

namespace tocsin::outbox {
namespace {

using testing::ElementsAre;

constexpr size_t kPayloadMax = 1 << 20;

class TableTest : public mysql::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    if (connection_ == nullptr) return;
    ASSERT_TRUE(mysql::Migrate(*connection_));
    table_ = MakeTable();
  }

  std::unique_ptr<Table> MakeTable() {
    auto table = Table::Open(options_);
    EXPECT_TRUE(table) << table.error().message;
    return table ? *std::move(table) : nullptr;
  }
  void Insert(std::string_view topic, size_t payload_bytes = 3) {
    const std::string payload(payload_bytes, 'x');
    const mysql::Value values[] = {topic, std::string_view(payload)};
    ASSERT_TRUE(connection_->Run("INSERT INTO tocsin_outbox (topic, payload) VALUES (?, ?)", values));
  }
  /// `count` rows at once.
  void InsertMany(int64_t count) {
    const mysql::Value values[] = {count};
    ASSERT_TRUE(
        connection_->Run("INSERT INTO tocsin_outbox (topic, payload) SELECT 'orders', seq FROM seq_1_to_10000 "
                         "LIMIT ?",
                         values));
  }
  std::shared_ptr<Page> Read(const std::vector<std::string>& skipped = {}) {
    auto page = table_->Read(skipped, kPayloadMax, budget_);
    EXPECT_TRUE(page) << page.error().message;
    return page ? *page : nullptr;
  }
  static std::vector<int64_t> IdsOf(const Page& page) {
    std::vector<int64_t> ids;
    for (const Entry& entry : page.entries) ids.push_back(entry.row.id);
    return ids;
  }
  int64_t Count() { return Ask("SELECT COUNT(*) FROM tocsin_outbox"); }

  metrics::Registry metrics_;
  net::Budget budget_{64 << 20, metrics_};
  std::unique_ptr<Table> table_;
};

TEST_F(TableTest, RowsComeInTheirOrderAndWhole) {
  Run("INSERT INTO tocsin_outbox (op, topic, job_id, job_key, payload, headers, delay_ms, due_ms, event_count, "
      "created) "
      "VALUES ('cancel', 'orders', 'A-1', 'k', 'text', '{}', 5, 6, 7, '2026-01-02 03:04:05.678'), "
      "('submit', 'carts', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-01-02 03:04:05.678')");
  const auto page = Read();
  ASSERT_EQ(page->entries.size(), 2U);
  const Row& first = page->entries[0].row;
  EXPECT_EQ(first.op, "cancel");
  EXPECT_EQ(first.topic, "orders");
  EXPECT_EQ(first.job_id, "A-1");
  EXPECT_EQ(first.job_key, "k");
  EXPECT_EQ(first.payload, "text");
  EXPECT_EQ(first.payload_bytes, 4U);
  EXPECT_EQ(first.headers, "{}");
  EXPECT_EQ(first.delay_ms, 5);
  EXPECT_EQ(first.due_ms, 6);
  EXPECT_EQ(first.event_count, 7);
  EXPECT_EQ(ToMs(first.created), 1'767'323'045'678);
  const Row& second = page->entries[1].row;
  EXPECT_EQ(second.topic, "carts");
  EXPECT_EQ(second.headers, std::nullopt);
  EXPECT_EQ(second.delay_ms, std::nullopt);
  EXPECT_EQ(second.payload, "");
  EXPECT_FALSE(page->full);
}

TEST_F(TableTest, TheStatementThatPicksUpUsesItsIndex) {
  InsertMany(5'000);
  Run("UPDATE tocsin_outbox SET state = 1 WHERE id % 3 = 0");
  Run("ANALYZE TABLE tocsin_outbox");
  for (const size_t skipped : {size_t{0}, kSkippedMax}) {
    auto explained = connection_->Prepare("EXPLAIN " + Table::PickUpSql(skipped));
    ASSERT_TRUE(explained) << explained.error().message;
    std::vector<mysql::Value> values{int64_t{0}};
    values.resize(1 + skipped, std::string_view("full"));
    values.emplace_back(static_cast<int64_t>(kPageRows));
    ASSERT_TRUE(explained->Run(values));
    ASSERT_TRUE(explained->Next().value());
    // id, select_type, table, type, possible_keys, key, key_len, ref, rows, Extra
    EXPECT_EQ(explained->Text(5).value(), "pick_up");
    const std::string extra = explained->Text(9).value().value_or("");
    EXPECT_FALSE(extra.contains("filesort") || extra.contains("temporary")) << extra;
  }
}

TEST_F(TableTest, APageHasABoundedNumberOfRows) {
  InsertMany(kPageRows + 1);
  const auto page = Read();
  EXPECT_EQ(page->entries.size(), kPageRows);
  EXPECT_TRUE(page->full);
}

TEST_F(TableTest, APageHasABoundedNumberOfBytesButOneRow) {
  for (int i = 0; i < 6; ++i) Insert("orders", kPayloadMax);
  const auto page = Read();
  EXPECT_EQ(page->entries.size(), kPageBytes / kPayloadMax - 1);
  EXPECT_TRUE(page->full);
  for (const Entry& entry : page->entries) EXPECT_EQ(entry.row.payload.size(), kPayloadMax);
  EXPECT_GT(page->charge.bytes(), page->entries.size() * kPayloadMax);
}

TEST_F(TableTest, PayloadsThatAreTooLargeAreNotRead) {
  Insert("orders", kPayloadMax + 1);
  Insert("orders", kPayloadMax);
  const auto page = Read();
  ASSERT_EQ(page->entries.size(), 2U);
  EXPECT_EQ(page->entries[0].row.payload, "");
  EXPECT_EQ(page->entries[0].row.payload_bytes, kPayloadMax + 1);
  EXPECT_EQ(page->entries[1].row.payload.size(), kPayloadMax);
}

TEST_F(TableTest, PayloadsThatAreTooLargeNeedNoRoom) {
  net::Budget small(4 << 20, metrics_);
  Insert("orders", 8 << 20);
  Insert("orders", 3);
  const auto page = table_->Read({}, kPayloadMax, small);
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ((*page)->entries.size(), 2U);
  EXPECT_LT((*page)->charge.bytes(), kPayloadMax);
}

TEST_F(TableTest, ALargeRowWaitsForRoom) {
  net::Budget small(4 << 20, metrics_);
  net::Charge others(small, net::Charge::For::kAnswer);
  ASSERT_TRUE(others.Reach(5 << 19));
  Insert("orders", kPayloadMax);
  const auto none = table_->Read({}, kPayloadMax, small);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kOverloaded);
  EXPECT_EQ(small.bytes(), others.bytes());
  EXPECT_EQ(table_->TakeTurn().value_or(false), true) << "the session is as good as before";
  EXPECT_TRUE(table_->GiveTurn());
  others.Clear();
  EXPECT_TRUE(table_->Read({}, kPayloadMax, small));
}

TEST_F(TableTest, TopicsAreSkipped) {
  Insert("full");
  Insert("orders");
  Insert("full");
  Insert("carts");
  EXPECT_THAT(IdsOf(*Read({"full"})), ElementsAre(2, 4));
  EXPECT_THAT(IdsOf(*Read({"full", "orders"})), ElementsAre(4));
  EXPECT_EQ(table_->Count(std::vector<std::string>{"full"}, 3).value(), 1U);
  EXPECT_EQ(table_->Count({}, 3).value(), 3U);
  EXPECT_THAT(IdsOf(**table_->Read({}, kPayloadMax, budget_, 2)), ElementsAre(3, 4));
  EXPECT_THAT(IdsOf(*Read()), ElementsAre(1, 2, 3, 4));
}

TEST_F(TableTest, WhatIsNotCommittedIsNotThereAndHoldsUpNothing) {
  auto other = mysql::Connection::Open(options_);
  ASSERT_TRUE(other);
  ASSERT_TRUE((*other)->Together([&]() -> Status {
    TOCSIN_TRY((*other)->Run("INSERT INTO tocsin_outbox (topic) VALUES ('orders')"));
    Insert("orders");
    EXPECT_THAT(IdsOf(*Read()), ElementsAre(2));
    return {};
  }));
  EXPECT_THAT(IdsOf(*Read()), ElementsAre(1, 2));
}

TEST_F(TableTest, RemovedRowsAreGoneAndRefusedOnesAreKept) {
  InsertMany(1'000);
  const Time created = Read()->entries[0].row.created;
  std::vector<RowKey> removed;
  for (int64_t id = 1; id <= 998; ++id) removed.push_back({.id = id, .created = created});
  const std::vector<Refusal> refused{{{.id = 999, .created = created}, "it is no good: 不行"}};
  ASSERT_TRUE(table_->Settle(removed, refused, Table::Try::kFirst));
  EXPECT_EQ(Count(), 2);
  EXPECT_EQ(Ask("SELECT COUNT(*) FROM tocsin_outbox WHERE id = 999 AND state = 1 AND error = 'it is no good: 不行'"),
            1);
  EXPECT_THAT(IdsOf(*Read()), ElementsAre(1'000));
}

TEST_F(TableTest, ALaterTryLeavesRowsAloneThatHaveTakenOverAnId) {
  InsertMany(4);
  const Time created = Read()->entries[0].row.created;
  Run("UPDATE tocsin_outbox SET created = created + INTERVAL 1 SECOND WHERE id IN (2, 4)");
  const std::vector<RowKey> removed{{1, created}, {2, created}, {9, created}};
  const std::vector<Refusal> refused{{{3, created}, "no"}, {{4, created}, "no"}};
  ASSERT_TRUE(MakeTable()->Settle(removed, refused, Table::Try::kAgain));
  EXPECT_THAT(IdsOf(*Read()), ElementsAre(2, 4));
  EXPECT_EQ(Ask("SELECT id FROM tocsin_outbox WHERE state = 1"), 3);
}

TEST_F(TableTest, ReadOnlyServersAreNotUsed) {
  Run("CREATE OR REPLACE USER 'least'@'%' IDENTIFIED BY 'wire-9f2e-horse'");
  Run("GRANT SELECT, UPDATE, DELETE ON shop.* TO 'least'@'%'");
  options_.username = "least";
  EXPECT_TRUE(Table::Open(options_));
  Run("SET GLOBAL read_only = 1");
  const auto table = Table::Open(options_);
  Run("SET GLOBAL read_only = 0");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, Code::kUnavailable);
}

TEST_F(TableTest, OneSessionHasTheTurn) {
  const auto other = MakeTable();
  EXPECT_EQ(table_->TakeTurn().value(), true);
  EXPECT_EQ(other->TakeTurn().value(), false);
  EXPECT_EQ(table_->HasTurn().value(), true);
  EXPECT_EQ(other->HasTurn().value(), false);
  ASSERT_TRUE(table_->GiveTurn());
  EXPECT_EQ(table_->HasTurn().value(), false);
  EXPECT_EQ(other->TakeTurn().value(), true);
  EXPECT_EQ(table_->TakeTurn().value(), false);
}

TEST_F(TableTest, TheTurnEndsWithItsSession) {
  const auto other = MakeTable();
  ASSERT_EQ(table_->TakeTurn().value(), true);
  table_.reset();
  // The server ends the session soon after the connection.
  EXPECT_TRUE(real::WaitFor(Millis(10'000), [&] { return other->TakeTurn().value(); }));
}

TEST_F(TableTest, TheClocksOfOneMachineAreTheSame) {
  const RealClock clock;
  const ClockSample sample = table_->CompareClocks(clock).value();
  EXPECT_LT(std::abs(sample.ahead.count()), 1'000);
}

/// Its first reading is as if the thread had then stood still for 4 s.
class LateClock final : public Clock {
 public:
  Moment Now() const override {
    const Moment now = real_.Now();
    return std::exchange(late_, true) ? now : Moment{.utc = now.utc - Millis(4'000), .steady = now.steady};
  }
  void Restore(const ClockPast&) override {}
  BootMark Mark() const override { return {}; }

 private:
  RealClock real_;
  mutable bool late_ = false;
};

TEST_F(TableTest, AQuestionThatTakesLongMakesNothingEarly) {
  const LateClock clock;
  const ClockSample sample = table_->CompareClocks(clock).value();
  EXPECT_GE(sample.ahead, Millis(0));
  EXPECT_GE(sample.round_trip, Millis(4'000));
}

}  // namespace
}  // namespace tocsin::outbox
