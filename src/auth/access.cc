#include "auth/access.h"

#include "base/text.h"

namespace tocsin::auth {
namespace {

bool IsAllowed(const Grant& grant, Access needed, std::string_view topic) {
  switch (needed) {
    case Access::kOpen:
    case Access::kKnown:
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

// In the order of Access.
constexpr std::string_view kScopesNeeded[] = {
    "no scope",        "no scope",        "the scope submit", "the scope consume", "the scope submit or consume",
    "the scope admin", "the scope admin", "the scope admin"};
static_assert(static_cast<size_t>(Access::kNodeAdmin) + 1 == std::size(kScopesNeeded));

std::string TopicsNeeded(Access needed, std::string_view topic) {
  if (needed == Access::kListTopics) return "";
  if (needed == Access::kNodeAdmin) return " for all topics (no topic prefix)";
  return fmt::format(" and a topic prefix with which '{}' begins", Shown(topic));
}

}  // namespace

Status CheckGrant(const Grant& grant, Access needed, std::string_view topic) {
  if (IsAllowed(grant, needed, topic)) return {};
  return Fail(Code::kForbidden, "this call needs {}{}; the access token has {}, for {}",
              kScopesNeeded[static_cast<size_t>(needed)], TopicsNeeded(needed, topic), grant.scopes.Text(),
              grant.prefix.empty() ? "all topics" : fmt::format("the topic prefix '{}'", grant.prefix));
}

}  // namespace tocsin::auth
