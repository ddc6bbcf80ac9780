// TokenWatch: notices when the file of access tokens has changed. The server's main thread polls it once a second: a
// stat costs microseconds, misses no replacement, and works on every file system (docs/adr/0011-tokens.md).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "auth/private_file.h"
#include "auth/token_set.h"

namespace tocsin::auth {

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
