// SimFileSystem: a file system in memory, for tests, that can fail, fill up, rot and lose power. It knows for each file
// what is durable and every write since, and for each folder every unsynced change of names, so that after a power cut
// it can show anything that a disk could hold. Thread-safe; open files must not outlive it.
//
// Stricter than most disks: syncing a new file does not make its name durable, and a folder's name is durable only
// after its parent was synced. The folders "." and "/" always exist.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/file.h"

namespace tocsin {

enum class SimOp : uint8_t {
  kOpen,
  kCreate,
  kRead,
  kWrite,
  kSync,
  kSize,
  kList,
  kMakeDir,
  kRemove,
  kSyncDir,
  kLock,
  kAny,  // the last: any of the above
};

/// What a power cut leaves of changes that were not synced.
enum class Survive : uint8_t {
  kNothing,
  kPrefix,   // the first of the changes, in the order in which they were made
  kSectors,  // each 512-byte sector of each write by itself, and of each folder's changes the first ones
  kTorn,     // all but the end of the last write
  kAll,      // as when only the process dies
};

class SimFileSystem final : public FileSystem {
 public:
  SimFileSystem();
  ~SimFileSystem() override;
  SimFileSystem(const SimFileSystem&) = delete;
  SimFileSystem& operator=(const SimFileSystem&) = delete;

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  Result<std::vector<std::string>> List(const std::string& folder) override;
  Status MakeDir(const std::string& folder) override;
  Status Remove(const std::string& path) override;
  Status SyncDir(const std::string& folder) override;
  Result<std::unique_ptr<FolderLock>> Lock(const std::string& folder) override;

  /// The `nth` operation of this kind from now on (1: the next) fails with `code` and does nothing. A failed sync of a
  /// file also drops what was not synced, as Linux does: a second sync would succeed without having saved it.
  void FailNth(SimOp op, uint64_t nth, Code code = Code::kIo);
  /// A write over the quota writes what fits and answers kStorageFull.
  void SetQuota(uint64_t bytes);
  /// The sum over all files that have a name.
  uint64_t BytesUsed() const;

  /// Operations of a kind so far, failed ones too.
  uint64_t Calls(SimOp op) const;
  /// Operations so far that change the disk or sync it: the points at which a power cut makes a difference.
  uint64_t IoCount() const;
  /// The operation that finds IoCount() == `index` fails half done, and all operations after it fail.
  void LosePowerAt(uint64_t index);
  bool PowerLost() const;
  /// What the disk could hold after a power cut now, or when it was: a new file system, all synced. The same choice and
  /// seed give the same one.
  std::unique_ptr<SimFileSystem> Survivors(Survive choice, uint64_t seed) const;

  /// Bit rot: changes stored bytes, also of open files. False outside the file.
  bool Corrupt(const std::string& path, uint64_t offset, std::string_view bytes);
  bool FlipBit(const std::string& path, uint64_t offset, int bit);
  /// Drops what the file holds from `size` on, durably; a longer size fills it with zeros. False if there is no file.
  bool CutOff(const std::string& path, uint64_t size);

 private:
  friend class SimFile;
  friend class SimLock;
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace tocsin
