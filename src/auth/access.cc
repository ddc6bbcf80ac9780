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

std::string_view ScopeNeeded(Access needed) {
  switch (needed) {
    case Access::kOpen:
    case Access::kKnown:
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

Status CheckGrant(const Grant& grant, Access needed, std::string_view topic) {
  if (IsAllowed(grant, needed, topic)) return {};
  return Fail(Code::kForbidden, "this call needs {}{}; the token has {}, for {}", ScopeNeeded(needed),
              TopicsNeeded(needed, topic), grant.scopes.Text(),
              grant.prefix.empty() ? "all topics" : fmt::format("the topic prefix '{}'", grant.prefix));
}

}  // namespace tocsin::auth
