// Files that hold secrets: read only if no other user can read or change them, and replaced in one step.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/result.h"

namespace tocsin::auth {

/// Differs after every change of a file, also of its mode or owner.
struct FileStamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  int64_t changed_s = 0;
  int64_t changed_ns = 0;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Nothing if there is no such file, or stat fails.
std::optional<FileStamp> StampOf(const std::string& path);

/// kInvalidArgument, with the command that helps, if others may read or write the file, or if it belongs neither to the
/// process's user nor to root.
Result<std::string> ReadPrivate(const std::string& path);
/// The only line of such a file: a password. Errors hold nothing of it.
Result<std::string> ReadPrivateLine(const std::string& path);

/// Calls `edit` with the text of the file (empty if there is none) and replaces it by what `edit` returns: atomic,
/// durable, mode 0600, with the owner it had. Concurrent editors wait for each other.
Status EditPrivate(const std::string& path, const std::function<Result<std::string>(std::string text)>& edit);

}  // namespace tocsin::auth
