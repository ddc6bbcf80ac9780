// Access: what a call needs, and whether a grant allows it. The same for every front end. Pure; no message ever has any
// part of a token in it.
#pragma once

#include <cstdint>
#include <string_view>

#include "auth/grant.h"
#include "base/result.h"

namespace tocsin::auth {

enum class Access : uint8_t {
  kOpen,             // anyone
  kKnown,            // any token
  kSubmit,           // on the topic
  kConsume,          // on the topic
  kSubmitOrConsume,  // on the topic
  kTopicAdmin,       // on the topic
  kListTopics,       // admin; the answer has the topics of the grant's prefix alone
  kNodeAdmin,        // admin of all topics
};

/// kForbidden, with what would be needed, where the grant does not allow it. `topic`: that the call is about.
Status CheckGrant(const Grant& grant, Access needed, std::string_view topic);

}  // namespace tocsin::auth
