// Router: the table of paths, who answers them and who may call. Immutable once built; shared by all shards.
//
// A pattern's segment is a word or {name}, which matches any one non-empty segment; a word wins over a name only by
// standing earlier in the table. A last segment {name*} matches the whole rest, which may be empty.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/beast/http/verb.hpp>

#include "api/verbs.h"
#include "auth/token_set.h"
#include "base/result.h"

namespace tocsin::http {

using auth::Access;
using Verb = boost::beast::http::verb;
struct Call;
using Handler = void (*)(Call& call);

struct Route {
  Verb method;
  std::string_view pattern;
  Access access;
  Handler handler;
  std::vector<std::string_view> query = {};  // the names that its query may have
  const api::Verb* verb = nullptr;           // null for what is no call of the API
  bool any_query = false;                    // its query is not looked at
};

using Query = std::vector<std::pair<std::string, std::string>>;

struct Match {
  const Route* route = nullptr;
  std::vector<std::string> params;  // decoded, in the pattern's order
  Query query;
};

class Router {
 public:
  explicit Router(std::vector<Route> routes) : routes_(std::move(routes)) {}

  /// kNotFound, or kMethodNotAllowed with the allowed ones in `allow`, or kInvalidArgument for a malformed escape or
  /// a name that no topic can have, or kUnknownField for a query that the route does not take.
  Result<Match> Find(Verb method, std::string_view target, std::string* allow = nullptr) const;

  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

/// The route that serves a verb.
Route RouteOf(api::VerbId id);
/// Everything that is served. Advancing the clock is served with a virtual clock only.
Router MakeRouter(bool virtual_clock);

/// What a caller shows for itself. An access token comes before the certificate of its connection.
struct Credentials {
  std::string authorization = {};     // the value of that header; empty if there is none
  std::string_view certificate = {};  // the subject of a verified one; empty if there is none
};

/// Null if the tokens know neither.
const auth::Grant* GrantOf(const auth::TokenSet& tokens, const Credentials& shown);
/// The grant under which the call is made, valid for as long as the tokens are. Null if everybody may do everything: no
/// authentication (`tokens` is null), or kOpen. `topic`: the decoded topic of the path. kUnauthenticated (the answer
/// then needs WWW-Authenticate: Bearer) or kForbidden otherwise.
Result<const auth::Grant*> CheckAccess(const auth::TokenSet* tokens, Access needed, const Credentials& shown,
                                       std::string_view topic);

/// Decodes name=value&...; a name that is not among `known`, or that comes twice, is refused.
Result<Query> ParseQuery(std::string_view query, const std::vector<std::string_view>& known);

}  // namespace tocsin::http
