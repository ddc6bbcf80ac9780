// TokenSet: the tokens of one file at one moment, to look up what a caller may do. Immutable: any number of threads may
// share one. Holds digests, never a secret.
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
  /// Fails where the file is not private (auth/private_file.h) or malformed.
  static Result<std::shared_ptr<const TokenSet>> Load(const std::string& path);

  /// What the bearer of this token may do; null where it is not known. Valid for as long as the set is.
  const Grant* Find(std::string_view bearer) const;
  size_t size() const { return records_.size(); }

 private:
  const std::vector<TokenRecord> records_;
  std::unordered_map<std::string_view, const TokenRecord*> by_id_;
};

}  // namespace tocsin::auth
