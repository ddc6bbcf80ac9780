#include "auth/token_set.h"

#include "base/text.h"

namespace tocsin::auth {

TokenSet::TokenSet(std::vector<TokenRecord> records) : records_(std::move(records)) {
  for (const TokenRecord& record : records_) {
    const bool token = record.certificate.empty();
    token ? by_id_.emplace(record.id, &record) : by_subject_.emplace(record.certificate, &record);
  }
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

const Grant* TokenSet::FindCertificate(std::string_view subject) const {
  const auto found = by_subject_.find(subject);
  return subject.empty() || found == by_subject_.end() ? nullptr : &found->second->grant;
}

std::string UnknownCertificate(std::string_view subject) {
  return fmt::format(
      "the server has no line for the certificate {} (tocsin token create --certificate makes one), and "
      "the call has no access token",
      Shown(subject));
}

Result<std::shared_ptr<const TokenSet>> TokenWatch::Poll() {
  const std::optional<FileStamp> stamp = StampOf(path_);
  if (seen_.has_value() && *seen_ == stamp) return nullptr;
  // Set before the read, so that the next Poll sees a change during it.
  seen_ = stamp;
  return TokenSet::Load(path_);
}

}  // namespace tocsin::auth
