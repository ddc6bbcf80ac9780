// A verb of the server (api/verbs.h) as a command: the arguments and flags that its fields make, and the request that
// those make. Pure, except for reading a payload.
#pragma once

#include <string>
#include <vector>

#include "api/verbs.h"
#include "cli/arguments.h"
#include "cli/context.h"

namespace tocsin::cli {

/// The verb of this command. The table has it.
const api::Verb& VerbNamed(std::string_view command);

/// TOPIC and ID as in the verb's path, PAYLOAD, TOKEN..., and each other field that is not a flag.
std::vector<Positional> PositionalsOf(const api::Verb& verb);
/// A flag for each field that has one, --file if there is a payload, and the settings of topics.
std::vector<Flag> FlagsOf(const api::Verb& verb);
/// The flag of one field, which the verb has.
Flag FlagOf(const api::Verb& verb, std::string_view field);

struct Request {
  std::string target;  // path and query
  json::object body;
};
Result<Request> RequestOf(const api::Verb& verb, const Arguments& arguments);

/// The server's answer. An error if it does not answer for each delivery token.
Result<json::object> Send(Context& context, const api::Verb& verb, const Request& request,
                          std::optional<Millis> limit = std::nullopt);

}  // namespace tocsin::cli
