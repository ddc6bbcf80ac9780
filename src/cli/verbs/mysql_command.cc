// `tocsin mysql schema|migrate|check`: the tables that a server uses in a database (clients/mysql/schema.h). They talk
// to the database itself, with a user that may create tables.
#include "auth/private_file.h"
#include "cli/arguments.h"
#include "clients/mysql/schema.h"

namespace tocsin::cli {
namespace {

constexpr Positional kUrl{"URL", "The database: mysql://user@host:port/database, or mysqls:// for TLS."};

std::vector<Flag> ConnectionFlags() {
  return {{.name = "password-file",
           .doc = "The file that holds the user's password, on one line; mode 0600. Default: no password.",
           .value = "FILE"},
          {.name = "tls-ca-file",
           .doc = "With mysqls://: the certificates that may sign that of the database. Default: the system's.",
           .value = "FILE"},
          {.name = "tls-cert-file",
           .doc = "With mysqls://: your own certificate, if the database asks for one.",
           .value = "FILE"},
          {.name = "tls-key-file", .doc = "The key of --tls-cert-file.", .value = "FILE"}};
}

Result<std::unique_ptr<mysql::Connection>> Connect(const Arguments& arguments) {
  TOCSIN_ASSIGN(mysql::Options options, mysql::ParseUrl("URL", *arguments.Text("URL")));
  if (const auto file = arguments.Text("password-file")) {
    auto password = auth::ReadPrivateLine(*file);
    if (!password) return std::unexpected(std::move(password).error().Prefixed("--password-file"));
    options.password = *std::move(password);
  }
  options.ca_file = arguments.Text("tls-ca-file").value_or("");
  options.cert_file = arguments.Text("tls-cert-file").value_or("");
  options.key_file = arguments.Text("tls-key-file").value_or("");
  const bool tls_files = !options.ca_file.empty() || !options.cert_file.empty() || !options.key_file.empty();
  if (tls_files && !options.tls) {
    return Fail(Code::kInvalidArgument, "URL has no TLS: with --tls-ca-file and the like it begins with mysqls://");
  }
  return mysql::Connection::Open(options);
}

Result<int> RunSchema(Context& context, const Arguments& /*arguments*/) {
  if (context.out.json()) {
    context.out.Json({{"outbox_version", mysql::kOutboxVersion}, {"sql", mysql::SchemaText()}});
  } else {
    context.out.Write(mysql::SchemaText());
  }
  return kExitOk;
}

/// An error of the tables is an answer; any other says nothing about them.
Result<int> Answer(Context& context, const mysql::Connection& connection, const Status& status, std::string_view done) {
  if (!status && (status.error().code != Code::kUnsupportedFormat || connection.lost())) {
    return std::unexpected(status.error());
  }
  const std::string text = status ? fmt::format("{}: {}", connection.options().Where(), done) : status.error().message;
  if (context.out.json()) {
    context.out.Json({{"usable", status.has_value()}, {"message", text}});
  } else {
    context.out.Print("{}\n", Printable(text));
  }
  return status ? kExitOk : kExitNo;
}

Result<int> RunMigrate(Context& context, const Arguments& arguments) {
  TOCSIN_ASSIGN(const auto connection, Connect(arguments));
  const Result<bool> changed = mysql::Migrate(*connection);
  const Status status = changed ? Status() : std::unexpected(changed.error());
  return Answer(context, *connection, status,
                fmt::format("tocsin_outbox {} version {}", changed.value_or(false) ? "has now" : "had already",
                            mysql::kOutboxVersion));
}

Result<int> RunCheck(Context& context, const Arguments& arguments) {
  TOCSIN_ASSIGN(const auto connection, Connect(arguments));
  const auto identity = mysql::CheckSchema(*connection);
  const Status status = identity ? mysql::CheckAccess(*connection) : std::unexpected(identity.error());
  return Answer(context, *connection, status,
                fmt::format("tocsin_outbox has version {}, as this program needs it", mysql::kOutboxVersion));
}

}  // namespace

Command MysqlSchema() {
  return {.name = "mysql schema",
          .summary = "prints the SQL that creates the tables",
          .details = "For whoever creates tables by other means than tocsin mysql migrate.",
          .examples = {{"mysql schema", "to review, or for your own migrations"}},
          .offline = true,
          .run = RunSchema};
}

Command MysqlMigrate() {
  return {.name = "mysql migrate",
          .summary = "creates the tables of the outbox in a database, or brings them to this version",
          .details = "Can be repeated: what is there stays. The user needs the privileges CREATE, SELECT and INSERT.",
          .positionals = {kUrl},
          .flags = ConnectionFlags(),
          .examples = {{"mysql migrate mysql://root@127.0.0.1/shop", "once, before the servers start"}},
          .no = "the tables were made by a newer version, or differ from what this one creates",
          .offline = true,
          .run = RunMigrate};
}

Command MysqlCheck() {
  return {.name = "mysql check",
          .summary = "says whether the tables of a database are as a server needs them",
          .positionals = {kUrl},
          .flags = ConnectionFlags(),
          .examples = {{"mysql check mysqls://tocsin@db.intern/shop --password-file secret",
                        "with the user and the password of the server"}},
          .no = "they are not; the answer says what is missing, and what helps",
          .offline = true,
          .run = RunCheck};
}

}  // namespace tocsin::cli
