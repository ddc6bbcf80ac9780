#include "auth/token_watch.h"

namespace tocsin::auth {

Result<std::shared_ptr<const TokenSet>> TokenWatch::Poll() {
  const std::optional<FileStamp> stamp = StampOf(path_);
  if (seen_.has_value() && *seen_ == stamp) return nullptr;
  // Set before the read, so that the next Poll sees a change during it.
  seen_ = stamp;
  return TokenSet::Load(path_);
}

}  // namespace tocsin::auth
