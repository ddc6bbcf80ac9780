#include "auth/grant.h"

#include <algorithm>

namespace tocsin::auth {

std::string ScopeSet::Text() const {
  std::string text;
  for (size_t i = 0; i < kScopeNames.size(); ++i) {
    if ((bits_ & Bit(static_cast<Scope>(i))) == 0) continue;
    if (!text.empty()) text += ',';
    text += kScopeNames[i];
  }
  return text;
}

std::string_view NameOf(Scope scope) { return kScopeNames[static_cast<size_t>(scope)]; }

std::optional<Scope> ParseScope(std::string_view name) {
  const auto* const found = std::ranges::find(kScopeNames, name);
  if (found == kScopeNames.end()) return std::nullopt;
  return static_cast<Scope>(found - kScopeNames.begin());
}

}  // namespace tocsin::auth
