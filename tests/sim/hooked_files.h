// HookedFiles: another file system that calls the test in the middle of what it does. For tests of what happens while a
// file is made, without threads that wait for a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"

namespace tocsin {

class HookedFiles final : public FileSystem {
 public:
  explicit HookedFiles(FileSystem& fs) : fs_(fs) {}

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override { return fs_.Open(path, mode); }
  Result<std::vector<std::string>> List(const std::string& folder) override { return fs_.List(folder); }
  Status MakeDir(const std::string& folder) override { return fs_.MakeDir(folder); }
  Status Remove(const std::string& path) override { return fs_.Remove(path); }
  Status SyncDir(const std::string& folder) override {
    if (on_sync_dir) on_sync_dir();
    return fs_.SyncDir(folder);
  }
  Result<std::unique_ptr<FolderLock>> Lock(const std::string& folder) override { return fs_.Lock(folder); }

  std::function<void()> on_sync_dir;

 private:
  FileSystem& fs_;
};

}  // namespace tocsin
