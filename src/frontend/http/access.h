// Who may make a call: what each route needs, checked against the token that the request carries. Pure functions over
// an immutable set of tokens; no message ever has any part of a token in it.
#pragma once

#include <string_view>

#include "auth/access.h"
#include "auth/token_set.h"
#include "base/result.h"

namespace tocsin::http {

using auth::Access;

/// The grant under which the call is made, valid for as long as the tokens are. Null if everybody may do everything: no
/// authentication (`tokens` is null), or kOpen. `authorization` is the value of that header, empty if there is
/// none; `topic` the decoded topic of the path. kUnauthenticated (the answer then needs WWW-Authenticate: Bearer) or
/// kForbidden otherwise.
Result<const auth::Grant*> CheckAccess(const auth::TokenSet* tokens, Access needed, std::string_view authorization,
                                       std::string_view topic);

}  // namespace tocsin::http
