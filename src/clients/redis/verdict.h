// Verdict: what an answer means for the command that it answers. Pure functions.
#pragma once

#include <optional>

#include "clients/redis/client.h"
#include "clients/redis/reply.h"

namespace tocsin::redis {

enum class Verdict : uint8_t {
  kAnswer,    // the caller's
  kMoved,     // nothing was done: the hash slot lives on another server
  kAsk,       // nothing was done: the key may already be on another server
  kLater,     // nothing was done, and it may succeed in a moment
  kDemoted,   // the same, on a server that takes no writes
  kNoScript,  // nothing was done: the server does not have the script
};

Verdict Judge(const Reply& reply);

struct Redirect {
  int hash_slot = 0;
  Endpoint to;
};

/// "MOVED 3999 10.0.0.1:6381" and the same with ASK. A server that does not know its peer's address leaves the host
/// out: then it is `from`'s.
std::optional<Redirect> ParseRedirect(std::string_view text, const Endpoint& from);

}  // namespace tocsin::redis
