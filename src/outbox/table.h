// Table: one session with the database of the outbox, and the statements that it needs. The mysql thread's.
//
// One node at a time picks rows up: the one that holds a lock of the server by name (GET_LOCK), which ends with its
// session. So rows are picked up in their order, over all nodes, and no row is locked while a store works on it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "clients/mysql/connection.h"
#include "net/budget.h"
#include "outbox/row.h"
#include "outbox/skew.h"

namespace tocsin::outbox {

constexpr size_t kPageRows = 512;
constexpr size_t kPageBytes = 4 << 20;  // one row at least
constexpr size_t kSkippedMax = 64;

/// Rows in their order, and the room that they take in the node's memory.
struct Page {
  explicit Page(net::Budget& budget) : charge(budget, net::Charge::For::kRequest) {}

  std::deque<Entry> entries;
  bool full = false;  // more may follow
  net::Charge charge;
};

struct Refusal {
  RowKey row;
  std::string why;
};

class Table {
 public:
  /// Connects. kUnsupportedFormat if the table cannot be used as it is.
  static Result<std::unique_ptr<Table>> Open(const mysql::Options& options);

  const std::string& identity() const { return identity_; }
  bool lost() const { return connection_->lost(); }

  /// Whether this session may pick rows up, from now until GiveTurn or its end. Not while it may already.
  Result<bool> TakeTurn();
  Status GiveTurn();
  /// Whether it still has the turn. The server then also knows that the session is alive.
  Result<bool> HasTurn();
  /// The first rows that are to be picked up, of those with an id over `after`, except those of `skipped` topics, of
  /// which there are kSkippedMax at most. Payloads over `payload_max` are not read. kOverloaded if there is no room for
  /// the first row.
  Result<std::shared_ptr<Page>> Read(std::span<const std::string> skipped, size_t payload_max, net::Budget& budget,
                                     int64_t after = 0);
  /// How many rows with ids up to `last` are to be picked up, except those of `skipped` topics.
  Result<size_t> Count(std::span<const std::string> skipped, int64_t last);
  enum class Try : uint8_t { kFirst, kAgain };
  /// In one transaction: these rows are gone, and those are refused. kAgain: they were read a while ago, maybe by
  /// another session, so a row that has got the id of one of them meanwhile is left alone.
  Status Settle(std::span<const RowKey> removed, std::span<const Refusal> refused, Try which);
  Result<ClockSample> CompareClocks(const Clock& clock);

  /// The statement of Read; `skipped` is 0 or kSkippedMax. For tests, which ask how the server runs it.
  static std::string PickUpSql(size_t skipped);

 private:
  explicit Table(std::unique_ptr<mysql::Connection> connection) : connection_(std::move(connection)) {}
  /// Prepares a statement when it is first needed.
  Result<mysql::Statement*> Find(const std::string& sql);
  Result<bool> ReadRow(mysql::Statement& statement, Row& row) const;
  /// Payloads that the first statement has left out.
  Status ReadLargePayloads(Page& page, size_t payload_max);
  Status Refuse(const Refusal& refusal);
  Status Remove(std::span<const RowKey> rows);
  Status RemoveIfSame(const RowKey& row);
  /// For a question that is asked often.
  Result<std::optional<int64_t>> AskNumber(const std::string& sql, std::span<const mysql::Value> values = {});

  std::unique_ptr<mysql::Connection> connection_;
  std::map<std::string, mysql::Statement> statements_;  // by their SQL; they end before the connection
  std::string identity_;
  size_t rows_next_ = kPageRows;  // fewer after a page of large rows, so that few rows are read in vain
};

}  // namespace tocsin::outbox
