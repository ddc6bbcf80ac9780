#include "outbox/table.h"

#include <algorithm>
#include <array>

#include "clients/mysql/schema.h"

namespace tocsin::outbox {
namespace {

using mysql::RowState;
using mysql::Statement;
using mysql::Value;

constexpr size_t kRowBytes = 1024;          // of an entry, without its texts
constexpr size_t kInlinePayload = 4 << 10;  // read with the row; the statement that reads rows has the number too
constexpr std::array<size_t, 4> kRemovedAtOnce{512, 64, 8, 1};
constexpr std::string_view kLockName = "CONCAT('tocsin_outbox.', SHA1(DATABASE()))";  // 64 characters at most
constexpr std::string_view kNow = "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)";
constexpr std::string_view kCreatedMs = "CAST(UNIX_TIMESTAMP(created) * 1000 AS SIGNED)";

// The columns of PickUpSql, in its order.
enum Column : uint32_t {
  kId,
  kOp,
  kTopic,
  kJobId,
  kJobKey,
  kPayload,
  kPayloadBytes,
  kHeaders,
  kDelay,
  kDue,
  kCount,
  kCreated,
};

std::string Questions(size_t count) {
  std::string text = "?";
  for (size_t i = 1; i < count; ++i) text += ", ?";
  return text;
}

/// The condition for `skipped` topics: 0, or kSkippedMax.
std::string Except(size_t skipped) {
  return skipped == 0 ? "" : fmt::format(" AND topic NOT IN ({})", Questions(skipped));
}

/// What the statement with this condition takes: a fixed number of names, so the last one stands for missing ones.
std::vector<Value> Values(int64_t id, std::span<const std::string> skipped) {
  TOCSIN_CHECK(skipped.size() <= kSkippedMax);
  std::vector<Value> values{id};
  if (skipped.empty()) return values;
  for (size_t i = 0; i < kSkippedMax; ++i) values.emplace_back(skipped[std::min(i, skipped.size() - 1)]);
  return values;
}

/// Of the memory for a row. A payload over `payload_max` is not read.
size_t BytesOf(const Row& row, size_t payload_max) {
  const size_t payload_bytes = row.payload_bytes <= payload_max ? row.payload_bytes : row.payload.size();
  return kRowBytes + row.op.size() + row.topic.size() + row.job_id.size() + row.job_key.size() + payload_bytes +
         row.headers.value_or("").size();
}

}  // namespace

std::string Table::PickUpSql(size_t skipped) {
  // Named, because a server that finds most rows new prefers the primary key, and then passes all that were refused.
  return fmt::format(
      "SELECT id, op, topic, job_id, job_key, IF(LENGTH(payload) <= {}, payload, NULL), LENGTH(payload), headers, "
      "delay_ms, due_ms, event_count, {} FROM tocsin_outbox FORCE INDEX (pick_up) WHERE state = {} AND id > ?{} ORDER "
      "BY id LIMIT "
      "?",
      kInlinePayload, kCreatedMs, static_cast<int64_t>(RowState::kNew), Except(skipped));
}

Result<std::unique_ptr<Table>> Table::Open(const mysql::Options& options) {
  TOCSIN_ASSIGN(auto connection, mysql::Connection::Open(options));
  std::unique_ptr<Table> table(new Table(std::move(connection)));
  TOCSIN_ASSIGN(table->identity_, mysql::CheckSchema(*table->connection_));
  TOCSIN_TRY(mysql::CheckAccess(*table->connection_));
  return table;
}

Result<Statement*> Table::Find(const std::string& sql) {
  const auto known = statements_.find(sql);
  if (known != statements_.end()) return &known->second;
  TOCSIN_ASSIGN(Statement statement, connection_->Prepare(sql));
  return &statements_.emplace(sql, std::move(statement)).first->second;
}

Result<bool> Table::TakeTurn() {
  TOCSIN_ASSIGN(const auto taken, connection_->AskNumber(fmt::format("SELECT GET_LOCK({}, 0)", kLockName)));
  return taken == 1;
}

Status Table::GiveTurn() {
  TOCSIN_TRY(connection_->AskNumber(fmt::format("SELECT RELEASE_LOCK({})", kLockName)));
  return {};
}

Result<bool> Table::HasTurn() {
  TOCSIN_ASSIGN(const auto mine, AskNumber(fmt::format("SELECT IS_USED_LOCK({}) = CONNECTION_ID()", kLockName)));
  return mine == 1;
}

Result<bool> Table::ReadRow(Statement& statement, Row& row) const {
  TOCSIN_ASSIGN(const bool more, statement.Next());
  if (!more) return false;
  const std::pair<Column, std::string*> texts[] = {
      {kOp, &row.op}, {kTopic, &row.topic}, {kJobId, &row.job_id}, {kJobKey, &row.job_key}, {kPayload, &row.payload}};
  for (const auto& [column, text] : texts) {
    TOCSIN_ASSIGN(auto value, statement.Text(column));
    *text = std::move(value).value_or("");
  }
  TOCSIN_ASSIGN(row.headers, statement.Text(kHeaders));
  TOCSIN_ASSIGN(row.delay_ms, statement.Number(kDelay));
  TOCSIN_ASSIGN(row.due_ms, statement.Number(kDue));
  TOCSIN_ASSIGN(row.event_count, statement.Number(kCount));
  TOCSIN_ASSIGN(const auto id, statement.Number(kId));
  TOCSIN_ASSIGN(const auto created, statement.Number(kCreated));
  TOCSIN_ASSIGN(const auto payload_bytes, statement.Number(kPayloadBytes));
  row.id = id.value_or(0);
  row.created = FromMs(created.value_or(0));
  row.payload_bytes = static_cast<size_t>(payload_bytes.value_or(0));
  return true;
}

Result<std::shared_ptr<Page>> Table::Read(std::span<const std::string> skipped, size_t payload_max, net::Budget& budget,
                                          int64_t after) {
  TOCSIN_ASSIGN(Statement* const statement, Find(PickUpSql(skipped.empty() ? 0 : kSkippedMax)));
  std::vector<Value> values = Values(after, skipped);
  values.emplace_back(static_cast<int64_t>(rows_next_));
  TOCSIN_TRY(statement->Run(values));

  auto page = std::make_shared<Page>(budget);
  size_t bytes = 0;
  bool cut = false;
  while (true) {
    Entry& entry = page->entries.emplace_back();
    TOCSIN_ASSIGN(const bool more, ReadRow(*statement, entry.row));
    const size_t needed = more ? bytes + BytesOf(entry.row, payload_max) : 0;
    const bool first = page->entries.size() == 1;
    cut = more && ((needed > kPageBytes && !first) || !page->charge.Reach(needed));
    if (cut && first) {
      TOCSIN_TRY(statement->Drop());
      return std::unexpected(budget.NoRoom());
    }
    if (!more || cut) {
      page->entries.pop_back();
      break;
    }
    bytes = needed;
  }
  TOCSIN_TRY(statement->Drop());
  page->full = cut || page->entries.size() == rows_next_;
  rows_next_ = cut ? page->entries.size() : std::min(rows_next_ * 2, kPageRows);
  TOCSIN_TRY(ReadLargePayloads(*page, payload_max));
  return page;
}

Result<size_t> Table::Count(std::span<const std::string> skipped, int64_t last) {
  const std::string sql =
      fmt::format("SELECT COUNT(*) FROM tocsin_outbox FORCE INDEX (pick_up) WHERE state = {} AND id <= ?{}",
                  static_cast<int64_t>(RowState::kNew), Except(skipped.empty() ? 0 : kSkippedMax));
  TOCSIN_ASSIGN(const auto count, AskNumber(sql, Values(last, skipped)));
  return static_cast<size_t>(count.value_or(0));
}

Status Table::ReadLargePayloads(Page& page, size_t payload_max) {
  for (auto entry = page.entries.begin(); entry != page.entries.end();) {
    Row& row = entry->row;
    if (row.payload_bytes <= kInlinePayload || row.payload_bytes > payload_max) {
      ++entry;
      continue;
    }
    TOCSIN_ASSIGN(Statement* const statement, Find("SELECT payload FROM tocsin_outbox WHERE id = ?"));
    const Value id[] = {row.id};
    TOCSIN_TRY(statement->Run(id));
    TOCSIN_ASSIGN(const bool found, statement->Next());
    if (found) {
      TOCSIN_ASSIGN(auto payload, statement->Text(0));
      row.payload = std::move(payload).value_or("");
    }
    TOCSIN_TRY(statement->Drop());
    // Somebody has removed or changed the row meanwhile: it is read again with the next page, if it is there.
    if (row.payload.size() != row.payload_bytes) {
      page.full = true;
      while (&page.entries.back() != &*entry) page.entries.pop_back();
      page.entries.pop_back();
      break;
    }
    ++entry;
  }
  return {};
}

Status Table::Remove(std::span<const RowKey> rows) {
  while (!rows.empty()) {
    const size_t count = *std::ranges::find_if(kRemovedAtOnce, [&](size_t each) { return each <= rows.size(); });
    TOCSIN_ASSIGN(Statement* const statement,
                  Find(fmt::format("DELETE FROM tocsin_outbox WHERE id IN ({})", Questions(count))));
    std::vector<Value> values;
    for (const RowKey& row : rows.first(count)) values.emplace_back(row.id);
    TOCSIN_TRY(statement->Run(values));
    rows = rows.subspan(count);
  }
  return {};
}

Status Table::RemoveIfSame(const RowKey& row) {
  TOCSIN_ASSIGN(Statement* const statement,
                Find(fmt::format("DELETE FROM tocsin_outbox WHERE id = ? AND {} = ?", kCreatedMs)));
  const Value values[] = {row.id, ToMs(row.created)};
  return statement->Run(values);
}

Status Table::Refuse(const Refusal& refusal) {
  TOCSIN_ASSIGN(Statement* const statement,
                Find(fmt::format("UPDATE tocsin_outbox SET state = ?, error = ? WHERE id = ? AND {} = ?", kCreatedMs)));
  const Value values[] = {static_cast<int64_t>(RowState::kRefused), std::string_view(refusal.why), refusal.row.id,
                          ToMs(refusal.row.created)};
  return statement->Run(values);
}

Status Table::Settle(std::span<const RowKey> removed, std::span<const Refusal> refused, Try which) {
  if (removed.empty() && refused.empty()) return {};
  return connection_->Together([&]() -> Status {
    for (const Refusal& refusal : refused) TOCSIN_TRY(Refuse(refusal));
    if (which == Try::kFirst) return Remove(removed);
    for (const RowKey& row : removed) TOCSIN_TRY(RemoveIfSame(row));
    return {};
  });
}

Result<std::optional<int64_t>> Table::AskNumber(const std::string& sql, std::span<const Value> values) {
  TOCSIN_ASSIGN(Statement* const statement, Find(sql));
  TOCSIN_TRY(statement->Run(values));
  TOCSIN_ASSIGN(const bool found, statement->Next());
  std::optional<int64_t> number;
  if (found) {
    TOCSIN_ASSIGN(number, statement->Number(0));
  }
  TOCSIN_TRY(statement->Drop());
  return number;
}

Result<ClockSample> Table::CompareClocks(const Clock& clock) {
  const std::string question = fmt::format("SELECT {}", kNow);
  TOCSIN_TRY(Find(question));  // to prepare it takes no part of the round trip
  const Time before = clock.Now().utc;
  TOCSIN_ASSIGN(const auto there, AskNumber(question));
  const Time after = clock.Now().utc;
  return ClockSample{.ahead = after - FromMs(there.value_or(0)), .round_trip = after - before};
}

}  // namespace tocsin::outbox
