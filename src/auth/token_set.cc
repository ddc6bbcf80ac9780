#include "auth/token_set.h"

namespace tocsin::auth {

TokenSet::TokenSet(std::vector<TokenRecord> records) : records_(std::move(records)) {
  for (const TokenRecord& record : records_) by_id_.emplace(record.id, &record);
}

Result<std::shared_ptr<const TokenSet>> TokenSet::Load(const std::string& path) {
  TOCSIN_ASSIGN(auto records, ListTokens(path));
  return std::make_shared<const TokenSet>(std::move(records));
}

const Grant* TokenSet::Find(std::string_view bearer) const {
  const auto parts = SplitToken(bearer);
  if (!parts) return nullptr;
  const auto found = by_id_.find(parts->id);
  if (found == by_id_.end() || !SameDigest(DigestOf(parts->secret), found->second->digest)) return nullptr;
  return &found->second->grant;
}

Result<std::shared_ptr<const TokenSet>> TokenWatch::Poll() {
  const std::optional<FileStamp> stamp = StampOf(path_);
  if (seen_.has_value() && *seen_ == stamp) return nullptr;
  // Set before the read, so that the next Poll sees a change during it.
  seen_ = stamp;
  return TokenSet::Load(path_);
}

}  // namespace tocsin::auth
