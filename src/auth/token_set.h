// TokenSet: the access tokens of one file at one moment, to look up what a caller may do. Immutable: any number of
// threads may share one. Holds digests, never a secret.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "auth/private_file.h"
#include "auth/token_file.h"

namespace tocsin::auth {

class TokenSet {
 public:
  explicit TokenSet(std::vector<TokenRecord> records);
  /// An error if the file is not private (auth/private_file.h) or malformed.
  static Result<std::shared_ptr<const TokenSet>> Load(const std::string& path);

  /// What the bearer of this access token may do; null if it is not known. Valid as long as the set.
  const Grant* Find(std::string_view bearer) const;
  /// The same for the client whose verified certificate has this subject.
  const Grant* FindCertificate(std::string_view subject) const;
  size_t size() const { return records_.size(); }
  const std::vector<TokenRecord>& records() const { return records_; }

 private:
  const std::vector<TokenRecord> records_;
  std::unordered_map<std::string_view, const TokenRecord*> by_id_;       // those with a secret
  std::unordered_map<std::string_view, const TokenRecord*> by_subject_;  // those of certificates
};

/// Why the client of a verified certificate may not call, and what would help.
std::string UnknownCertificate(std::string_view subject);

/// Notices when the file of access tokens has changed. The server's main thread polls it once a second: a stat costs
/// microseconds, misses no replacement, and works on every file system (docs/adr/0011-tokens.md).
class TokenWatch {
 public:
  explicit TokenWatch(std::string path) : path_(std::move(path)) {}

  /// The access tokens if the file has changed since it was last read, null if not. An error comes once for each state
  /// of the file; the caller keeps what it had.
  Result<std::shared_ptr<const TokenSet>> Poll();
  /// The next Poll reads the file in any case.
  void Forget() { seen_.reset(); }

 private:
  const std::string path_;
  // Of the last read, also if that failed: unset before the first one, empty if the file was missing.
  std::optional<std::optional<FileStamp>> seen_;
};

}  // namespace tocsin::auth
