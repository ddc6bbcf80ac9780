#include "auth/access.h"

#include <algorithm>

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
    case Access::kShowJob:
      return grant.Allows(Scope::kSubmit, topic) || grant.Allows(Scope::kConsume, topic) ||
             grant.Allows(Scope::kObserve, topic);
    case Access::kTopicObserve:
      return grant.Allows(Scope::kObserve, topic);
    case Access::kTopicAdmin:
      return grant.Allows(Scope::kAdmin, topic);
    case Access::kListTopics:
      return grant.scopes.Has(Scope::kObserve);
    case Access::kNodeObserve:
      return grant.AllowsAll(Scope::kObserve);
    case Access::kNodeAdmin:
      return grant.AllowsAll(Scope::kAdmin);
  }
  return false;
}

// In the order of Access.
constexpr std::string_view kAccessScopes[] = {"none",
                                              "any",
                                              "submit",
                                              "consume",
                                              "submit, consume or observe",
                                              "observe",
                                              "admin",
                                              "observe",
                                              "observe, all topics",
                                              "admin, all topics"};
static_assert(static_cast<size_t>(Access::kNodeAdmin) + 1 == std::size(kAccessScopes));

/// What `needed` asks for, for an access that not everybody has.
std::string Needs(Access needed, std::string_view topic) {
  if (needed == Access::kListTopics) return "observe";
  if (needed == Access::kNodeObserve) return "observe for all topics (no topic prefix)";
  if (needed == Access::kNodeAdmin) return "admin for all topics (no topic prefix)";
  return fmt::format("{} and a topic prefix with which '{}' begins", ScopeOf(needed), Shown(topic));
}

}  // namespace

bool SeesPayloads(const Grant& grant, Access access) {
  return grant.scopes.Has(Scope::kConsume) || (access == Access::kShowJob && grant.scopes.Has(Scope::kSubmit));
}

std::string_view ScopeOf(Access access) { return kAccessScopes[static_cast<size_t>(access)]; }

std::optional<Scope> ParseScope(std::string_view name) {
  const auto* const found = std::ranges::find(kScopeNames, name);
  if (found == kScopeNames.end()) return std::nullopt;
  return static_cast<Scope>(found - kScopeNames.begin());
}

std::string ScopeSet::Text() const {
  std::string text;
  for (size_t i = 0; i < kScopeNames.size(); ++i) {
    if (!HasItself(static_cast<Scope>(i))) continue;
    if (!text.empty()) text += ',';
    text += kScopeNames[i];
  }
  return text;
}

Status CheckGrant(const Grant& grant, Access needed, std::string_view topic) {
  if (IsAllowed(grant, needed, topic)) return {};
  return Fail(Code::kForbidden, "this call needs the scope {}; the access token has {}, for {}", Needs(needed, topic),
              grant.scopes.Text(),
              grant.prefix.empty() ? "all topics" : fmt::format("the topic prefix '{}'", grant.prefix));
}

}  // namespace tocsin::auth
