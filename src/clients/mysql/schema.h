// Schema: the tables that Tocsin uses in a database of MySQL, by version. One table of columns; the SQL that creates
// them and the check of what is there follow from it.
//
// The table tocsin_schema has a row for each part (today: the outbox) with the version that the part has here, and an
// identity, a random number that the part got when it was created.
//
// To change a table: raise kOutboxVersion, and let Migrate change what a version before has made. A server refuses a
// version that it does not know, so the database is migrated before the servers are.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "clients/mysql/connection.h"

namespace tocsin::mysql {

constexpr int64_t kOutboxVersion = 1;

/// What a row of tocsin_outbox waits for.
enum class RowState : int64_t { kNew = 0, kRefused = 1 };

/// The SQL that Migrate runs in a database that has none of the tables.
std::string SchemaText();

/// Creates what is missing; whether something was. kUnsupportedFormat if a newer program has made the tables, or a
/// table is there that differs.
Result<bool> Migrate(Connection& connection);

/// The identity of the outbox. kUnsupportedFormat, with the command that helps, if this program cannot use the tables
/// as they are.
Result<std::string> CheckSchema(Connection& connection);

/// An error if the user may not remove or change rows of the outbox, or the server takes no writes at the moment.
Status CheckAccess(Connection& connection);

}  // namespace tocsin::mysql
