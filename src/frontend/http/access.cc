#include "frontend/http/access.h"

#include <algorithm>

#include "frontend/http/unknown_field.h"

namespace tocsin::http {
namespace {

constexpr std::string_view kScheme = "bearer ";

Result<std::string_view> BearerOf(std::string_view authorization) {
  if (authorization.empty()) {
    return Fail(
        Code::kUnauthenticated,
        "this server needs a token: send the header Authorization: Bearer TOKEN (tocsin token create makes one)");
  }
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  if (!std::ranges::equal(authorization.substr(0, kScheme.size()), kScheme, {}, lower)) {
    return Fail(Code::kUnauthenticated, "the Authorization header is not of the form: Bearer TOKEN");
  }
  authorization.remove_prefix(kScheme.size());
  const size_t begin = std::min(authorization.size(), authorization.find_first_not_of(' '));
  return authorization.substr(begin);
}

bool IsAllowed(const auth::Grant& grant, Access needed, std::string_view topic) {
  using auth::Scope;
  switch (needed) {
    case Access::kOpen:
      return true;
    case Access::kSubmit:
      return grant.Allows(Scope::kSubmit, topic);
    case Access::kConsume:
      return grant.Allows(Scope::kConsume, topic);
    case Access::kSubmitOrConsume:
      return grant.Allows(Scope::kSubmit, topic) || grant.Allows(Scope::kConsume, topic);
    case Access::kTopicAdmin:
      return grant.Allows(Scope::kAdmin, topic);
    case Access::kListTopics:
      return grant.scopes.Has(Scope::kAdmin);
    case Access::kNodeAdmin:
      return grant.AllowsAll(Scope::kAdmin);
  }
  return false;
}

std::string_view ScopeNeeded(Access needed) {
  switch (needed) {
    case Access::kOpen:
      return "no scope";
    case Access::kSubmit:
      return "the scope submit";
    case Access::kConsume:
      return "the scope consume";
    case Access::kSubmitOrConsume:
      return "the scope submit or consume";
    case Access::kTopicAdmin:
    case Access::kListTopics:
    case Access::kNodeAdmin:
      return "the scope admin";
  }
  return "";
}

std::string TopicsNeeded(Access needed, std::string_view topic) {
  if (needed == Access::kListTopics) return "";
  if (needed == Access::kNodeAdmin) return " for all topics (no topic prefix)";
  return fmt::format(" and a topic prefix with which '{}' begins", Shown(topic));
}

}  // namespace

Result<const auth::Grant*> CheckAccess(const auth::TokenSet* tokens, Access needed, std::string_view authorization,
                                       std::string_view topic) {
  if (tokens == nullptr || needed == Access::kOpen) return nullptr;
  const auto bearer = BearerOf(authorization);
  if (!bearer) return std::unexpected(bearer.error());
  const auth::Grant* const grant = tokens->Find(*bearer);
  if (grant == nullptr) {
    return Fail(Code::kUnauthenticated, "the token is not known: it is mistyped, or revoked");
  }
  if (IsAllowed(*grant, needed, topic)) return grant;
  return Fail(Code::kForbidden, "this call needs {}{}; the token has {}, for {}", ScopeNeeded(needed),
              TopicsNeeded(needed, topic), grant->scopes.Text(),
              grant->prefix.empty() ? "all topics" : fmt::format("the topic prefix '{}'", grant->prefix));
}

}  // namespace tocsin::http
