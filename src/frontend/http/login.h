// Logging in with a browser: POST /v1/session puts an access token into a cookie that scripts cannot read, and every
// call below /v1 takes that in place of the header Authorization (docs/adr/0021-sessions-and-events.md). The server
// keeps nothing: each call checks the token, so a revoked one ends the session. Pages of other sites are refused
// before, for every call (header_check.h), and the browser sends them no cookie. No state.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::http {

struct Call;

/// The cookie's name for a server that is called as `host`. Cookies are shared by all ports of a machine, so the name
/// has the port.
std::string CookieName(std::string_view host);
/// "Bearer TOKEN", as in Authorization, if the header Cookie has the cookie of this host; otherwise empty.
std::string BearerInCookie(std::string_view cookies, std::string_view host);
/// The header line that sets the cookie, or removes it if `token` is empty. `secure`: the browser is to send it over
/// TLS alone.
std::string SetCookieLine(std::string_view token, std::string_view host, bool secure);

Status BeginSession(Call& call);
Status ShowSession(Call& call);
Status EndSession(Call& call);

}  // namespace tocsin::http
