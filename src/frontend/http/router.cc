#include "frontend/http/router.h"

#include <algorithm>

#include "base/text.h"
#include "frontend/http/decode.h"
#include "frontend/http/header_check.h"
#include "model/topic.h"

namespace tocsin::http {
namespace {

/// Cuts the first segment off a path that begins with a slash.
std::string_view NextSegment(std::string_view& path) {
  path.remove_prefix(1);
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

bool IsName(std::string_view segment) { return segment.starts_with('{'); }
bool IsRest(std::string_view segment) { return segment.ends_with("*}"); }

bool Matches(std::string_view pattern, std::string_view path) {
  while (!pattern.empty() && !path.empty()) {
    const std::string_view want = NextSegment(pattern);
    if (IsRest(want)) return true;
    const std::string_view have = NextSegment(path);
    if (IsName(want) ? have.empty() : want != have) return false;
  }
  return pattern.empty() && path.empty();
}

Result<std::vector<std::string>> Params(std::string_view pattern, std::string_view path) {
  std::vector<std::string> params;
  while (!pattern.empty()) {
    const std::string_view want = NextSegment(pattern);
    const std::string_view have = IsRest(want) ? path.substr(1) : NextSegment(path);
    if (!IsName(want)) continue;
    auto param = DecodePercent(have, false);
    const std::string_view name = want.substr(1, want.size() - 2);
    if (!param) {
      return FailField(Code::kInvalidArgument, std::string(name), "'{}' in the path has a malformed % escape",
                       Shown(have));
    }
    if (name == "topic") TOCSIN_TRY(ValidateTopicName(*param));
    params.push_back(*std::move(param));
  }
  return params;
}

Result<std::string_view> BearerOf(std::string_view authorization) {
  if (authorization.empty()) {
    return Fail(
        Code::kUnauthenticated,
        "this server needs a token: send the header Authorization: Bearer TOKEN (tocsin token create makes one)");
  }
  constexpr std::string_view kScheme = "bearer ";
  if (!SameIgnoringCase(authorization.substr(0, kScheme.size()), kScheme)) {
    return Fail(Code::kUnauthenticated, "the Authorization header is not of the form: Bearer TOKEN");
  }
  authorization.remove_prefix(kScheme.size());
  const size_t begin = std::min(authorization.size(), authorization.find_first_not_of(' '));
  return authorization.substr(begin);
}

}  // namespace

Result<Match> Router::Find(Verb method, std::string_view target, std::string* allow) const {
  const std::string_view path = target.substr(0, target.find('?'));
  std::string methods;
  for (const Route& route : routes_) {
    if (!path.starts_with('/') || !Matches(route.pattern, path)) continue;
    if (route.method != method) {
      methods += methods.empty() ? "" : ", ";
      methods += std::string_view(boost::beast::http::to_string(route.method));
      if (route.method == Verb::get) methods += ", HEAD";  // the session asks for GET then
      continue;
    }
    TOCSIN_ASSIGN(auto params, Params(route.pattern, path));
    if (route.any_query) return Match{&route, std::move(params), {}};
    TOCSIN_ASSIGN(auto query, ParseQuery(target.substr(std::min(target.size(), path.size() + 1)), route.query));
    return Match{&route, std::move(params), std::move(query)};
  }
  if (methods.empty()) return Fail(Code::kNotFound, "there is nothing at '{}'", Shown(path));
  if (allow != nullptr) *allow = methods;
  return Fail(Code::kMethodNotAllowed, "'{}' takes {}", Shown(path), methods);
}

Result<Query> ParseQuery(std::string_view query, const std::vector<std::string_view>& known) {
  Query values;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    auto name = DecodePercent(pair.substr(0, equals), true);
    auto value = DecodePercent(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!name || !value) return Fail(Code::kInvalidArgument, "'{}' in the query has a malformed % escape", Shown(pair));
    if (std::ranges::find(known, std::string_view(*name)) == known.end()) return UnknownField(*name, known);
    if (std::ranges::find(values, *name, &Query::value_type::first) != values.end()) {
      return FailField(Code::kInvalidArgument, *name, "{} is in the query twice", *name);
    }
    values.emplace_back(*std::move(name), *std::move(value));
  }
  return values;
}

const auth::Grant* GrantOf(const auth::TokenSet& tokens, const Credentials& shown) {
  if (shown.authorization.empty()) return tokens.FindCertificate(shown.certificate);
  const auto bearer = BearerOf(shown.authorization);
  return bearer ? tokens.Find(*bearer) : nullptr;
}

Result<const auth::Grant*> CheckAccess(const auth::TokenSet* tokens, Access needed, const Credentials& shown,
                                       std::string_view topic) {
  if (tokens == nullptr || needed == Access::kOpen) return nullptr;
  const auth::Grant* const grant = GrantOf(*tokens, shown);
  if (grant == nullptr) {
    if (shown.authorization.empty() && !shown.certificate.empty()) {
      return Fail(Code::kUnauthenticated, "{}", auth::UnknownCertificate(shown.certificate));
    }
    TOCSIN_TRY(BearerOf(shown.authorization));
    return Fail(Code::kUnauthenticated, "the token is not known: it is mistyped, or revoked");
  }
  TOCSIN_TRY(auth::CheckGrant(*grant, needed, topic));
  return grant;
}

}  // namespace tocsin::http
