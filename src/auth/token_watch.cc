#include "auth/token_watch.h"

namespace tocsin::auth {

Result<std::shared_ptr<const TokenSet>> TokenWatch::Poll() {
  const std::optional<FileStamp> stamp = StampOf(path_);
  if (seen_.has_value() && *seen_ == stamp) return nullptr;
  // Remembered before it is read: a change during the reading is seen at the next turn.
  seen_ = stamp;
  return TokenSet::Load(path_);
}

}  // namespace tocsin::auth
