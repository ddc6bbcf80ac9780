// TokenWatch: notices when the file of tokens has changed. Used by one thread, the server's main one, which asks once a
// second: a look at the file's stamp costs microseconds, misses nothing that is replaced, and needs no support of the
// file system (docs/adr/0011-tokens.md).
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

  /// The tokens, where the file has changed since it was last read; null where it has not. An error, told once for each
  /// state of the file: what was read before stays in force.
  Result<std::shared_ptr<const TokenSet>> Poll();
  /// The next Poll reads the file whatever its stamp.
  void Forget() { seen_.reset(); }

 private:
  const std::string path_;
  // What was last read or refused: unset before the first time, empty where the file was missing.
  std::optional<std::optional<FileStamp>> seen_;
};

}  // namespace tocsin::auth
