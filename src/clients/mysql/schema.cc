#include "clients/mysql/schema.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace tocsin::mysql {
namespace {

struct Column {
  std::string_view name;
  std::string_view type;  // as information_schema.columns.data_type has it
  std::string_view rest;  // of the definition
  std::string_view doc;
};

// Names are compared byte by byte (utf8mb4_bin), as the server does. The SQL has `doc` between single quotes.
constexpr std::array kOutboxColumns{
    Column{"id", "bigint", "NOT NULL AUTO_INCREMENT PRIMARY KEY", "the order of pick-up"},
    Column{"op", "varchar", "(16) NOT NULL DEFAULT 'submit'", "submit or cancel"},
    Column{"topic", "varchar", "(256) NOT NULL", "of the job"},
    Column{"job_id", "varchar", "(256) NULL", "own id of the job; NULL: made from this row"},
    Column{"job_key", "varchar", "(256) NULL", "key of the job"},
    Column{"payload", "longblob", " NULL", "of the job"},
    Column{"headers", "text", " NULL", "an object of JSON whose values are texts"},
    Column{"delay_ms", "bigint", " NULL", "from the INSERT until the job is due"},
    Column{"due_ms", "bigint", " NULL", "when the job is due, in milliseconds since 1970, UTC"},
    Column{"event_count", "bigint", " NULL", "events that the job waits for"},
    Column{"created", "timestamp", "(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)", "when the row was inserted"},
    Column{"state", "tinyint", " NOT NULL DEFAULT 0", "0: to be picked up, 1: refused"},
    Column{"error", "varchar", "(1024) NULL", "why the row was refused"},
};

constexpr std::string_view kTableOptions = "ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

std::string CreateSchemaTable() {
  return fmt::format(
      "CREATE TABLE IF NOT EXISTS tocsin_schema (\n"
      "  part varchar(64) NOT NULL PRIMARY KEY,\n"
      "  version bigint NOT NULL,\n"
      "  identity varchar(64) NOT NULL\n"
      ") {}",
      kTableOptions);
}

std::string CreateOutbox() {
  std::string text = "CREATE TABLE IF NOT EXISTS tocsin_outbox (\n";
  for (const Column& column : kOutboxColumns) {
    text +=
        fmt::format("  {} {}{}{} COMMENT '{}',\n", column.name, column.type,
                    column.rest.starts_with('(') || column.rest.starts_with(' ') ? "" : " ", column.rest, column.doc);
  }
  return text + fmt::format("  INDEX pick_up (state, id)\n) {}", kTableOptions);
}

std::string NoteOutbox() {
  return fmt::format(
      "INSERT IGNORE INTO tocsin_schema (part, version, identity) VALUES ('outbox', {}, REPLACE(UUID(), '-', ''))",
      kOutboxVersion);
}

/// The version of the outbox; 0 if it was never created.
Result<int64_t> FindVersion(Connection& connection) {
  auto version = connection.AskNumber("SELECT version FROM tocsin_schema WHERE part = 'outbox'");
  if (version) return version->value_or(0);
  if (version.error().code == Code::kUnsupportedFormat && !connection.lost()) return 0;  // there is no such table
  return std::unexpected(std::move(version).error());
}

template <class... Args>
std::unexpected<Error> Refuse(const Connection& connection, fmt::format_string<Args...> format, Args&&... args) {
  return Fail(Code::kUnsupportedFormat, "{}: {}", connection.options().Where(),
              fmt::format(format, std::forward<Args>(args)...));
}

std::unexpected<Error> RefuseNewer(const Connection& connection, int64_t version) {
  return Refuse(connection, "tocsin_outbox has version {}, and this program knows only {}: use a newer program",
                version, kOutboxVersion);
}

std::string Advice(const Connection& connection) {
  return fmt::format("run tocsin mysql migrate {}", connection.options().Url());
}

/// What differs from the table of columns; empty if nothing does.
Result<std::string> FindDifference(Connection& connection) {
  TOCSIN_ASSIGN(Statement asked,
                connection.Prepare("SELECT column_name, data_type FROM information_schema.columns "
                                   "WHERE table_schema = DATABASE() AND table_name = 'tocsin_outbox'"));
  TOCSIN_TRY(asked.Run());
  std::map<std::string, std::string, std::less<>> types;
  while (true) {
    TOCSIN_ASSIGN(const bool more, asked.Next());
    if (!more) break;
    TOCSIN_ASSIGN(const auto name, asked.Text(0));
    TOCSIN_ASSIGN(const auto type, asked.Text(1));
    types[name.value_or("")] = type.value_or("");
  }
  for (const Column& column : kOutboxColumns) {
    const auto found = types.find(column.name);
    if (found == types.end()) return fmt::format("tocsin_outbox has no column {}", column.name);
    if (found->second != column.type) {
      return fmt::format("the column {} of tocsin_outbox is {} and not {}", column.name, found->second, column.type);
    }
  }
  TOCSIN_ASSIGN(const auto indexed,
                connection.AskNumber("SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = "
                                     "DATABASE() AND table_name = 'tocsin_outbox' AND index_name = 'pick_up' AND "
                                     "(seq_in_index, column_name) IN ((1, 'state'), (2, 'id'))"));
  if (indexed != 2) return std::string("tocsin_outbox has no index pick_up (state, id)");
  TOCSIN_ASSIGN(const auto transactional,
                connection.AskNumber("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() "
                                     "AND table_name = 'tocsin_outbox' AND engine = 'InnoDB'"));
  return transactional == 1 ? "" : "tocsin_outbox is not of the engine InnoDB";
}

}  // namespace

std::string SchemaText() {
  return fmt::format("{};\n\n{};\n\n{};\n", CreateSchemaTable(), CreateOutbox(), NoteOutbox());
}

Result<bool> Migrate(Connection& connection) {
  TOCSIN_ASSIGN(const int64_t version, FindVersion(connection));
  if (version > kOutboxVersion) return RefuseNewer(connection, version);
  if (version == kOutboxVersion) {
    TOCSIN_ASSIGN(const std::string difference, FindDifference(connection));
    if (difference.empty()) return false;
  }
  // A statement that changes tables is a transaction by itself, so each can be repeated.
  TOCSIN_TRY(connection.Run(CreateSchemaTable()));
  TOCSIN_TRY(connection.Run(CreateOutbox()));
  TOCSIN_TRY(connection.Run(NoteOutbox()));
  TOCSIN_TRY(CheckSchema(connection));
  return true;
}

Result<std::string> CheckSchema(Connection& connection) {
  TOCSIN_ASSIGN(const int64_t version, FindVersion(connection));
  if (version == 0) return Refuse(connection, "there is no table tocsin_outbox: {}", Advice(connection));
  if (version > kOutboxVersion) return RefuseNewer(connection, version);
  if (version < kOutboxVersion) {
    return Refuse(connection, "tocsin_outbox has version {}, and this program needs {}: {}", version, kOutboxVersion,
                  Advice(connection));
  }
  TOCSIN_ASSIGN(const std::string difference, FindDifference(connection));
  if (!difference.empty()) {
    return Refuse(connection, "{}; compare SHOW CREATE TABLE tocsin_outbox with tocsin mysql schema", difference);
  }
  TOCSIN_ASSIGN(Statement asked, connection.Prepare("SELECT identity FROM tocsin_schema WHERE part = 'outbox'"));
  TOCSIN_TRY(asked.Run());
  TOCSIN_ASSIGN(const bool found, asked.Next());
  if (!found) return Refuse(connection, "there is no table tocsin_outbox: {}", Advice(connection));
  TOCSIN_ASSIGN(const auto identity, asked.Text(0));
  TOCSIN_TRY(asked.Drop());
  return identity.value_or("");
}

Status CheckAccess(Connection& connection) {
  // No row has this id.
  TOCSIN_TRY(connection.Run("DELETE FROM tocsin_outbox WHERE id = 0"));
  return connection.Run("UPDATE tocsin_outbox SET state = 0, error = NULL WHERE id = 0");
}

}  // namespace tocsin::mysql
