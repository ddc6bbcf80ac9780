// What the doors write into the audit (base/audit.h): who did what to which topic through which door, and how it ended.
// A call that only looks, and a call of a producer or a consumer, is no act of an administrator.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "frontend/shared/handlers.h"

namespace tocsin::shared {

struct Caller {
  std::string who;        // the name of the access token; "-" if there are none
  std::string from;       // the address
  std::string_view door;  // "http" or "resp"
};
Caller CallerOf(const auth::Grant* grant, const net::Connection& connection, std::string_view door);

/// Lets the call's reply write its line when it answers, if the call is an act.
void AddAudit(Call& call, const api::Verb& verb, const auth::Grant* grant, const net::Connection& connection,
              std::string_view door);

/// Writes the line of a call that the caller's access token does not allow, if it is an act. At most some lines a
/// second: the caller may be a program that tries again and again. `verb` may be null.
void AuditRefusal(const api::Verb* verb, std::string_view topic, const Caller& caller, const Error& error, IoTime now);

/// Logs that a caller without a valid access token was turned away. At most one line a second, which counts the others.
void LogRefusedLogin(const net::Connection& connection, std::string_view door, const Error& error, IoTime now);

/// Logs that a client spoke TLS to a door that does not. At most one line a second, which counts the others.
void LogTlsClient(const net::Connection& connection, std::string_view door, IoTime now);

}  // namespace tocsin::shared
