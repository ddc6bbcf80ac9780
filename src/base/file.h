// All file access of the embedded store goes through this interface, so that tests can fail, tear, drop and reorder it
// (sim/sim_file.h) and see what a power cut would leave.
//
// Durability as in POSIX: a write is durable after File::Sync of that file; a new or removed name is durable after
// FileSystem::SyncDir of its folder. After a failed Sync the data of the file is unknown: callers stop and recover.
//
// Errors that pass: kStorageFull (the disk is full), and kOverloaded (the process or the machine has as many files open
// as it may). Other errors of the system are kIo.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tocsin {

/// Offsets, sizes and buffers of a direct file are multiples of this.
constexpr size_t kBlock = 4096;

class File {
 public:
  virtual ~File() = default;
  /// Reads up to out.size() bytes at `offset`; fewer only at the end of the file.
  virtual Result<size_t> Read(uint64_t offset, std::span<char> out) = 0;
  virtual Status Write(uint64_t offset, std::string_view bytes) = 0;
  virtual Status Sync() = 0;
  virtual Result<uint64_t> Size() = 0;
};

enum class OpenMode {
  kRead,         // an existing file, read only
  kWrite,        // an existing file, to read and write
  kCreate,       // a new file; fails if the name exists
  kWriteDirect,  // kWrite, past the page cache if the file system can
};

/// Held while a server uses a folder; released when destroyed.
class FolderLock {
 public:
  virtual ~FolderLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) = 0;
  /// Names (not paths) in `folder`, sorted.
  virtual Result<std::vector<std::string>> List(const std::string& folder) = 0;
  /// Ok if the folder exists already. Its parent must exist.
  virtual Status MakeDir(const std::string& folder) = 0;
  virtual Status Remove(const std::string& path) = 0;
  virtual Status SyncDir(const std::string& folder) = 0;
  /// kInUse, naming the holder, if another process holds it.
  virtual Result<std::unique_ptr<FolderLock>> Lock(const std::string& folder) = 0;
};

/// The file system of this machine.
std::unique_ptr<FileSystem> MakePosixFileSystem();

}  // namespace tocsin
