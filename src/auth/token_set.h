// TokenSet: the access tokens of one file at one moment, to look up what a caller may do. Immutable: any number of
// threads may share one. Holds digests, never a secret.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "auth/token_file.h"

namespace tocsin::auth {

class TokenSet {
 public:
  explicit TokenSet(std::vector<TokenRecord> records);
  /// An error if the file is not private (auth/private_file.h) or malformed.
  static Result<std::shared_ptr<const TokenSet>> Load(const std::string& path);

  /// What the bearer of this access token may do; null if it is not known. Valid as long as the set.
  const Grant* Find(std::string_view bearer) const;
  size_t size() const { return records_.size(); }

 private:
  const std::vector<TokenRecord> records_;
  std::unordered_map<std::string_view, const TokenRecord*> by_id_;
};

}  // namespace tocsin::auth
