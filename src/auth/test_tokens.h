// Tokens for tests of servers.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "auth/token_set.h"

namespace tocsin::auth {

/// An access token that may do everything with topics that begin with `prefix`, and a set with only this one.
inline std::pair<std::string, std::shared_ptr<const TokenSet>> OneToken(std::string prefix = "") {
  std::string token = *MakeToken();
  const auto parts = *SplitToken(token);
  TokenRecord record{.id = std::string(parts.id), .digest = DigestOf(parts.secret)};
  record.grant.scopes.Add(Scope::kAdmin);
  record.grant.prefix = std::move(prefix);
  return {std::move(token), std::make_shared<const TokenSet>(std::vector{std::move(record)})};
}

}  // namespace tocsin::auth
