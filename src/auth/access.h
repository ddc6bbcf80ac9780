// Access: what a call needs, and whether a grant allows it. The same for every front end. Pure; no message has any part
// of an access token in it.
#pragma once

#include <cstdint>
#include <string_view>

#include "auth/grant.h"
#include "base/result.h"

namespace tocsin::auth {

enum class Access : uint8_t {
  kOpen,             // anyone
  kKnown,            // any access token
  kSubmit,           // on the topic
  kConsume,          // on the topic
  kSubmitOrConsume,  // on the topic
  kTopicAdmin,       // on the topic
  kListTopics,       // admin; the answer has only the topics of the grant's prefix
  kNodeAdmin,        // admin of all topics
};

/// kForbidden, with what would be needed, if the grant does not allow it. `topic`: that of the call.
Status CheckGrant(const Grant& grant, Access needed, std::string_view topic);

}  // namespace tocsin::auth
