// Connection: one session of a MySQL server or MariaDB, and the prepared statements on it.
//
// Calls block, for Options::timeout at most: one thread uses a connection, never a shard's. The names of hosts are
// looked up by the system's resolver, whose own timeouts count. A statement belongs to its connection, which outlives
// it.
//
// Errors name the server. kUnavailable: the server is away, or another transaction was in the way; the same call may
// succeed later. kForbidden: the server refuses the user or what the user asks for. kUnsupportedFormat: a database, a
// table or a column is missing. A connection that is lost() answers errors alone: open another one.
//
// Every session: UTC, READ COMMITTED, strict SQL mode, utf8mb4, autocommit. A server that hears nothing of a session
// for kSessionIdle ends it, so that the locks of a machine that vanished do not stay. Files of this machine are never
// sent, whatever the server asks for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "clients/mysql/options.h"

// NOLINTBEGIN(readability-identifier-naming): of the library, whose header only connection.cc includes
struct st_mysql;
struct st_mysql_stmt;
// NOLINTEND(readability-identifier-naming)

namespace tocsin::mysql {

constexpr std::chrono::seconds kSessionIdle{20};

/// What a ? of a statement stands for; monostate is NULL. A text's bytes live until Run returns.
using Value = std::variant<std::monostate, int64_t, std::string_view>;

class Connection;

class Statement {
 public:
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;

  /// As many values as the statement has ?. The rows of a run before are dropped.
  Status Run(std::span<const Value> values = {});
  /// The next row of what Run has asked for; false at the end. Rows come one by one, so one is in memory at a time.
  Result<bool> Next();
  /// Drops the rows that are left.
  Status Drop();

  // Of the present row, by the place of the column. Nothing if it is NULL.
  Result<std::optional<int64_t>> Number(uint32_t column);
  Result<std::optional<std::string>> Text(uint32_t column);

  /// How many rows the last run has changed.
  uint64_t changed() const;

 private:
  friend class Connection;
  struct Free {
    void operator()(st_mysql_stmt* statement) const;
  };
  struct Cell;
  explicit Statement(Connection& connection);
  std::unexpected<Error> Failed();

  Connection* connection_;
  std::unique_ptr<st_mysql_stmt, Free> statement_;
  std::unique_ptr<Cell[]> cells_;  // of the present row
  uint32_t columns_ = 0;
};

class Connection {
 public:
  static Result<std::unique_ptr<Connection>> Open(const Options& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<Statement> Prepare(std::string_view sql);
  /// Prepares a statement for one run.
  Status Run(std::string_view sql, std::span<const Value> values = {});
  /// The first number of the first row; nothing if there is no row, or if it is NULL.
  Result<std::optional<int64_t>> AskNumber(std::string_view sql, std::span<const Value> values = {});

  /// Everything that `work` does takes effect together, or nothing of it.
  template <class Work>
  Status Together(Work work) {
    TOCSIN_TRY(Command("START TRANSACTION"));
    Status done = work();
    if (done) done = Command("COMMIT");
    if (!done && !lost()) {
      if (const Status undone = Command("ROLLBACK"); !undone) return undone;
    }
    return done;
  }

  bool lost() const { return lost_; }
  const Options& options() const { return options_; }

 private:
  friend class Statement;
  struct Close {
    void operator()(st_mysql* session) const;
  };
  explicit Connection(const Options& options) : options_(options) {}
  Status Begin();
  Status SetUp();
  /// For what cannot be prepared, or need not be.
  Status Command(std::string_view sql);
  std::unexpected<Error> Failed(unsigned number, std::string_view text);

  const Options options_;
  std::unique_ptr<st_mysql, Close> session_;
  bool lost_ = false;
};

}  // namespace tocsin::mysql
