// Files that hold secrets: read only where no other user can read or change them, replaced in one step.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/result.h"

namespace tocsin::auth {

/// Differs after every change that others make to a file, also to its mode or owner.
struct FileStamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  int64_t changed_s = 0;
  int64_t changed_ns = 0;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Nothing where there is no such file, or it cannot be looked at.
std::optional<FileStamp> StampOf(const std::string& path);

/// kInvalidArgument, with the command that helps, where others may read or write the file or it belongs to another user
/// than the process's and root.
Result<std::string> ReadPrivate(const std::string& path);

/// Gives `edit` the text of the file (empty where there is none) and puts what it returns in its place: either wholly
/// or not at all, durable, mode 0600, with the owner it had. Editors wait for each other.
Status EditPrivate(const std::string& path, const std::function<Result<std::string>(std::string text)>& edit);

}  // namespace tocsin::auth
