#include "clients/mysql/connection.h"

#include <algorithm>
#include <array>

#include <mariadb/errmsg.h>
#include <mariadb/mysql.h>
#include <mariadb/mysqld_error.h>

namespace tocsin::mysql {
namespace {

constexpr unsigned long kPacketMax = 64UL << 20;  // a row, or a statement
// What the server may ask a password for. Not those that hand it over as it is.
constexpr const char* kLogins = "mysql_native_password,client_ed25519,caching_sha2_password,sha256_password";

// Numbers of MySQL that MariaDB's header does not have.
constexpr unsigned kSessionWasKilled = 3169;
constexpr unsigned kSessionWasIdle = 4031;

struct Row {
  unsigned number;
  Code code;
  bool lost;  // there is no session any more
};

constexpr std::array kErrors{
    Row{CR_CONNECTION_ERROR, Code::kUnavailable, true},
    Row{CR_CONN_HOST_ERROR, Code::kUnavailable, true},
    Row{CR_UNKNOWN_HOST, Code::kUnavailable, true},
    Row{CR_SERVER_GONE_ERROR, Code::kUnavailable, true},
    Row{CR_SERVER_LOST, Code::kUnavailable, true},
    Row{CR_SERVER_LOST_EXTENDED, Code::kUnavailable, true},
    Row{CR_SSL_CONNECTION_ERROR, Code::kUnavailable, true},
    Row{ER_CON_COUNT_ERROR, Code::kUnavailable, true},
    Row{ER_SERVER_SHUTDOWN, Code::kUnavailable, true},
    Row{ER_NORMAL_SHUTDOWN, Code::kUnavailable, true},
    Row{ER_CONNECTION_KILLED, Code::kUnavailable, true},
    Row{kSessionWasKilled, Code::kUnavailable, true},
    Row{kSessionWasIdle, Code::kUnavailable, true},
    Row{ER_LOCK_DEADLOCK, Code::kUnavailable, false},
    Row{ER_LOCK_WAIT_TIMEOUT, Code::kUnavailable, false},
    Row{ER_QUERY_INTERRUPTED, Code::kUnavailable, false},
    Row{ER_DISK_FULL, Code::kUnavailable, false},
    Row{ER_RECORD_FILE_FULL, Code::kUnavailable, false},
    Row{ER_OPTION_PREVENTS_STATEMENT, Code::kUnavailable, true},  // a replica, since a failover: the name may lead to
    Row{ER_READ_ONLY_MODE, Code::kUnavailable, true},             // another server now
    Row{ER_ACCESS_DENIED_ERROR, Code::kForbidden, true},
    Row{ER_DBACCESS_DENIED_ERROR, Code::kForbidden, true},
    Row{ER_TABLEACCESS_DENIED_ERROR, Code::kForbidden, false},
    Row{ER_COLUMNACCESS_DENIED_ERROR, Code::kForbidden, false},
    Row{ER_BAD_DB_ERROR, Code::kUnsupportedFormat, true},
    Row{ER_NO_SUCH_TABLE, Code::kUnsupportedFormat, false},
    Row{ER_BAD_FIELD_ERROR, Code::kUnsupportedFormat, false},
};

unsigned Seconds(Millis time) { return static_cast<unsigned>(std::chrono::ceil<std::chrono::seconds>(time).count()); }

}  // namespace

struct Statement::Cell {
  unsigned long length = 0;
  my_bool is_null = 0;
  my_bool is_cut = 0;
};

void Statement::Free::operator()(st_mysql_stmt* statement) const { mysql_stmt_close(statement); }

void Connection::Close::operator()(st_mysql* session) const { mysql_close(session); }

Connection::~Connection() = default;

Result<std::unique_ptr<Connection>> Connection::Open(const Options& options) {
  std::unique_ptr<Connection> connection(new Connection(options));
  TOCSIN_TRY(connection->Begin());
  TOCSIN_TRY(connection->SetUp());
  return connection;
}

Status Connection::Begin() {
  session_.reset(mysql_init(nullptr));
  TOCSIN_CHECK(session_ != nullptr);
  MYSQL* const session = session_.get();
  const unsigned timeout = Seconds(options_.timeout);
  const unsigned off = 0;
  const unsigned tcp = MYSQL_PROTOCOL_TCP;  // the library takes "localhost" for a socket otherwise
  const my_bool yes = 1;
  const auto set = [session](mysql_option option, const void* value) { mysql_optionsv(session, option, value); };
  set(MYSQL_OPT_CONNECT_TIMEOUT, &timeout);
  set(MYSQL_OPT_READ_TIMEOUT, &timeout);
  set(MYSQL_OPT_WRITE_TIMEOUT, &timeout);
  set(MYSQL_OPT_PROTOCOL, &tcp);
  set(MYSQL_OPT_LOCAL_INFILE, &off);
  set(MYSQL_OPT_MAX_ALLOWED_PACKET, &kPacketMax);
  set(MYSQL_SET_CHARSET_NAME, "utf8mb4");
  set(MARIADB_OPT_RESTRICTED_AUTH, kLogins);
  if (options_.tls) {
    set(MYSQL_OPT_SSL_ENFORCE, &yes);
    set(MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
    if (!options_.ca_file.empty()) set(MYSQL_OPT_SSL_CA, options_.ca_file.c_str());
    if (!options_.cert_file.empty()) set(MYSQL_OPT_SSL_CERT, options_.cert_file.c_str());
    if (!options_.key_file.empty()) set(MYSQL_OPT_SSL_KEY, options_.key_file.c_str());
  }
  if (mysql_real_connect(session, options_.host.c_str(), options_.username.c_str(), options_.password.c_str(),
                         options_.database.c_str(), options_.port, nullptr, 0) != nullptr) {
    return {};
  }
  lost_ = true;
  return Failed(mysql_errno(session), mysql_error(session));
}

Status Connection::SetUp() {
  TOCSIN_TRY(
      Command(fmt::format("SET SESSION time_zone='+00:00', autocommit=1, wait_timeout={}, innodb_lock_wait_timeout=1, "
                          "sql_mode='STRICT_ALL_TABLES,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
                          kSessionIdle.count())));
  return Command("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
}

Status Connection::Command(std::string_view sql) {
  if (mysql_real_query(session_.get(), sql.data(), sql.size()) == 0) return {};
  return Failed(mysql_errno(session_.get()), mysql_error(session_.get()));
}

std::unexpected<Error> Connection::Failed(unsigned number, std::string_view text) {
  const auto* const row = std::ranges::find(kErrors, number, &Row::number);
  const bool known = row != kErrors.end();
  if (known && row->lost) lost_ = true;
  return Fail(known ? row->code : Code::kInternal, "{}: {} (error {})", options_.Where(), text, number);
}

Result<Statement> Connection::Prepare(std::string_view sql) {
  Statement statement(*this);
  if (mysql_stmt_prepare(statement.statement_.get(), sql.data(), sql.size()) != 0) return statement.Failed();
  statement.columns_ = mysql_stmt_field_count(statement.statement_.get());
  statement.cells_ = std::make_unique<Statement::Cell[]>(statement.columns_);
  return statement;
}

Status Connection::Run(std::string_view sql, std::span<const Value> values) {
  TOCSIN_ASSIGN(Statement statement, Prepare(sql));
  return statement.Run(values);
}

Result<std::optional<int64_t>> Connection::AskNumber(std::string_view sql, std::span<const Value> values) {
  TOCSIN_ASSIGN(Statement statement, Prepare(sql));
  TOCSIN_TRY(statement.Run(values));
  TOCSIN_ASSIGN(const bool found, statement.Next());
  if (!found) return std::nullopt;
  TOCSIN_ASSIGN(const std::optional<int64_t> number, statement.Number(0));
  TOCSIN_TRY(statement.Drop());
  return number;
}

Statement::Statement(Connection& connection)
    : connection_(&connection), statement_(mysql_stmt_init(connection.session_.get())) {
  TOCSIN_CHECK(statement_ != nullptr);
}

Statement::Statement(Statement&& other) noexcept = default;

Statement::~Statement() = default;

std::unexpected<Error> Statement::Failed() {
  return connection_->Failed(mysql_stmt_errno(statement_.get()), mysql_stmt_error(statement_.get()));
}

Status Statement::Run(std::span<const Value> values) {
  TOCSIN_CHECK(values.size() == mysql_stmt_param_count(statement_.get()));
  TOCSIN_TRY(Drop());
  std::vector<MYSQL_BIND> binds(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    MYSQL_BIND& bind = binds[i];
    bind = {};
    if (const auto* const number = std::get_if<int64_t>(&values[i])) {
      bind.buffer_type = MYSQL_TYPE_LONGLONG;
      bind.buffer = const_cast<int64_t*>(number);  // NOLINT: the library reads it only
    } else if (const auto* const text = std::get_if<std::string_view>(&values[i])) {
      bind.buffer_type = MYSQL_TYPE_STRING;
      bind.buffer = const_cast<char*>(text->data());  // NOLINT: the same
      bind.buffer_length = text->size();
    } else {
      bind.buffer_type = MYSQL_TYPE_NULL;
    }
  }
  if (!binds.empty() && mysql_stmt_bind_param(statement_.get(), binds.data()) != 0) return Failed();
  if (mysql_stmt_execute(statement_.get()) != 0) return Failed();
  if (columns_ == 0) return {};
  // No room for any column: Number and Text fetch them, when their length is known.
  std::vector<MYSQL_BIND> columns(columns_);
  for (uint32_t i = 0; i < columns_; ++i) {
    columns[i] = {};
    columns[i].buffer_type = MYSQL_TYPE_STRING;
    columns[i].length = &cells_[i].length;
    columns[i].is_null = &cells_[i].is_null;
    columns[i].error = &cells_[i].is_cut;
  }
  if (mysql_stmt_bind_result(statement_.get(), columns.data()) != 0) return Failed();
  return {};
}

Result<bool> Statement::Next() {
  switch (mysql_stmt_fetch(statement_.get())) {
    case 0:
    case MYSQL_DATA_TRUNCATED:
      return true;
    case MYSQL_NO_DATA:
      return false;
    default:
      return Failed();
  }
}

Status Statement::Drop() {
  if (columns_ == 0 || mysql_stmt_free_result(statement_.get()) == 0) return {};
  return Failed();
}

Result<std::optional<int64_t>> Statement::Number(uint32_t column) {
  TOCSIN_CHECK(column < columns_);
  if (cells_[column].is_null != 0) return std::nullopt;
  int64_t number = 0;
  MYSQL_BIND bind{};
  bind.buffer_type = MYSQL_TYPE_LONGLONG;
  bind.buffer = &number;
  if (mysql_stmt_fetch_column(statement_.get(), &bind, column, 0) != 0) return Failed();
  return number;
}

Result<std::optional<std::string>> Statement::Text(uint32_t column) {
  TOCSIN_CHECK(column < columns_);
  if (cells_[column].is_null != 0) return std::nullopt;
  std::string text(cells_[column].length, '\0');
  if (text.empty()) return text;
  MYSQL_BIND bind{};
  bind.buffer_type = MYSQL_TYPE_STRING;
  bind.buffer = text.data();
  bind.buffer_length = text.size();
  if (mysql_stmt_fetch_column(statement_.get(), &bind, column, 0) != 0) return Failed();
  return text;
}

uint64_t Statement::changed() const { return mysql_stmt_affected_rows(statement_.get()); }

}  // namespace tocsin::mysql
