#include "sim/sim_file.h"

#include <set>

#include "base/result.h"
#include "sim/sim_disk.h"

namespace tocsin {

using namespace sim;

class SimFile final : public File {
 public:
  SimFile(SimFileSystem::State& state, std::shared_ptr<Inode> inode, std::string path, OpenMode mode)
      : state_(state), inode_(std::move(inode)), path_(std::move(path)), mode_(mode) {}

  Result<size_t> Read(uint64_t offset, std::span<char> out) override {
    CheckAligned(offset, out.data(), out.size());
    const std::scoped_lock lock(state_.mutex);
    TOCSIN_TRY(state_.Begin(SimOp::kRead, path_).status);
    if (offset >= inode_->now.size()) return 0;
    return inode_->now.copy(out.data(), out.size(), offset);
  }

  Status Write(uint64_t offset, std::string_view bytes) override {
    TOCSIN_CHECK(mode_ != OpenMode::kRead);
    CheckAligned(offset, bytes.data(), bytes.size());
    const std::scoped_lock lock(state_.mutex);
    Verdict verdict = state_.Begin(SimOp::kWrite, path_);
    if (!verdict.takes_effect) return verdict.status;
    Status wrote = state_.Write(*inode_, path_, offset, bytes);
    return verdict.status ? wrote : verdict.status;
  }

  Status Sync() override {
    const std::scoped_lock lock(state_.mutex);
    Verdict verdict = state_.Begin(SimOp::kSync, path_);
    if (verdict.fault) {
      inode_->now = inode_->durable;
      inode_->unsynced.clear();
    }
    if (!verdict.status) return verdict.status;
    for (const Change& change : inode_->unsynced) Apply(inode_->durable, change);
    inode_->unsynced.clear();
    return {};
  }

  Result<uint64_t> Size() override {
    const std::scoped_lock lock(state_.mutex);
    TOCSIN_TRY(state_.Begin(SimOp::kSize, path_).status);
    return inode_->now.size();
  }

 private:
  void CheckAligned(uint64_t offset, const char* data, size_t size) const {
    if (mode_ != OpenMode::kWriteDirect) return;
    TOCSIN_CHECK((offset | reinterpret_cast<uintptr_t>(data) | size) % kBlock == 0);
  }

  SimFileSystem::State& state_;
  const std::shared_ptr<Inode> inode_;
  const std::string path_;
  const OpenMode mode_;
};

class SimLock final : public FolderLock {
 public:
  SimLock(SimFileSystem::State& state, std::string folder) : state_(state), folder_(std::move(folder)) {}
  ~SimLock() override {
    const std::scoped_lock lock(state_.mutex);
    state_.locks.erase(folder_);
  }

 private:
  SimFileSystem::State& state_;
  const std::string folder_;
};

SimFileSystem::SimFileSystem() : state_(std::make_unique<State>()) {}
SimFileSystem::~SimFileSystem() = default;

Result<std::unique_ptr<File>> SimFileSystem::Open(const std::string& path, OpenMode mode) {
  const std::scoped_lock lock(state_->mutex);
  const bool create = mode == OpenMode::kCreate;
  Verdict verdict = state_->Begin(create ? SimOp::kCreate : SimOp::kOpen, path);
  if (!verdict.takes_effect) return std::unexpected(verdict.status.error());
  const auto found = state_->now.files.find(path);
  if (create) {
    if (found != state_->now.files.end()) return Fail(Code::kIo, "cannot create {}: File exists", path);
    if (!state_->now.folders.contains(Parent(path))) return Fail(Code::kIo, "cannot create {}: no such folder", path);
    auto inode = std::make_shared<Inode>();
    state_->ChangeNames({.in = Parent(path), .add = path, .inode = inode});
    TOCSIN_TRY(verdict.status);
    return std::make_unique<SimFile>(*state_, std::move(inode), path, mode);
  }
  if (found == state_->now.files.end()) return Fail(Code::kIo, "cannot open {}: No such file or directory", path);
  return std::make_unique<SimFile>(*state_, found->second, path, mode);
}

Result<std::vector<std::string>> SimFileSystem::List(const std::string& folder) {
  const std::scoped_lock lock(state_->mutex);
  TOCSIN_TRY(state_->Begin(SimOp::kList, folder).status);
  if (!state_->now.folders.contains(folder))
    return Fail(Code::kIo, "cannot list {}: No such file or directory", folder);
  std::set<std::string> names;
  const auto add = [&](const std::string& path) {
    if (path.find_first_not_of("./") != std::string::npos && Parent(path) == folder) {
      names.insert(path.substr(path.rfind('/') + 1));
    }
  };
  for (const auto& [path, inode] : state_->now.files) add(path);
  for (const std::string& path : state_->now.folders) add(path);
  return std::vector(names.begin(), names.end());
}

Status SimFileSystem::MakeDir(const std::string& folder) {
  const std::scoped_lock lock(state_->mutex);
  Verdict verdict = state_->Begin(SimOp::kMakeDir, folder);
  if (!verdict.takes_effect) return verdict.status;
  if (!state_->now.folders.contains(Parent(folder))) return Fail(Code::kIo, "cannot make folder {}: no parent", folder);
  if (!state_->now.folders.contains(folder)) {
    state_->ChangeNames({.in = Parent(folder), .folder = folder});
  }
  return verdict.status;
}

Status SimFileSystem::Remove(const std::string& path) {
  const std::scoped_lock lock(state_->mutex);
  Verdict verdict = state_->Begin(SimOp::kRemove, path);
  if (!verdict.takes_effect) return verdict.status;
  if (!state_->now.files.contains(path)) return Fail(Code::kIo, "cannot remove {}: No such file or directory", path);
  state_->ChangeNames({.in = Parent(path), .remove = path});
  return verdict.status;
}

Status SimFileSystem::SyncDir(const std::string& folder) {
  const std::scoped_lock lock(state_->mutex);
  TOCSIN_TRY(state_->Begin(SimOp::kSyncDir, folder).status);
  if (!state_->now.folders.contains(folder)) return Fail(Code::kIo, "cannot sync folder {}: no such folder", folder);
  std::erase_if(state_->unsynced, [&](const NameChange& change) {
    if (change.in != folder) return false;
    Apply(state_->durable, change);
    return true;
  });
  return {};
}

Result<std::unique_ptr<FolderLock>> SimFileSystem::Lock(const std::string& folder) {
  const std::scoped_lock lock(state_->mutex);
  TOCSIN_TRY(state_->Begin(SimOp::kLock, folder).status);
  if (!state_->locks.insert(folder).second) return Fail(Code::kInUse, "data folder {} is in use by process 1", folder);
  return std::make_unique<SimLock>(*state_, folder);
}

void SimFileSystem::FailNth(SimOp op, uint64_t nth, Code code) {
  TOCSIN_CHECK(nth > 0);
  const std::scoped_lock lock(state_->mutex);
  state_->faults.push_back({op, nth, code});
}

void SimFileSystem::SetQuota(uint64_t bytes) {
  const std::scoped_lock lock(state_->mutex);
  state_->quota = bytes;
}

uint64_t SimFileSystem::BytesUsed() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->BytesUsed();
}

uint64_t SimFileSystem::Calls(SimOp op) const {
  const std::scoped_lock lock(state_->mutex);
  return state_->calls[static_cast<size_t>(op)];
}

uint64_t SimFileSystem::IoCount() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->io_count;
}

void SimFileSystem::LosePowerAt(uint64_t index) {
  const std::scoped_lock lock(state_->mutex);
  state_->power_lost_at = index;
}

bool SimFileSystem::PowerLost() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->power_lost;
}

bool SimFileSystem::Corrupt(const std::string& path, uint64_t offset, std::string_view bytes) {
  const std::scoped_lock lock(state_->mutex);
  const auto found = state_->now.files.find(path);
  if (found == state_->now.files.end() || offset + bytes.size() > found->second->now.size()) return false;
  Apply(found->second->now, offset, bytes);
  if (offset + bytes.size() <= found->second->durable.size()) Apply(found->second->durable, offset, bytes);
  return true;
}

bool SimFileSystem::FlipBit(const std::string& path, uint64_t offset, int bit) {
  char byte = 0;
  {
    const std::scoped_lock lock(state_->mutex);
    const auto found = state_->now.files.find(path);
    if (found == state_->now.files.end() || offset >= found->second->now.size()) return false;
    byte = static_cast<char>(found->second->now[offset] ^ 1 << bit);
  }
  return Corrupt(path, offset, {&byte, 1});
}

bool SimFileSystem::CutOff(const std::string& path, uint64_t size) {
  const std::scoped_lock lock(state_->mutex);
  const auto found = state_->now.files.find(path);
  if (found == state_->now.files.end()) return false;
  Inode& inode = *found->second;
  inode.now.resize(size);
  inode.durable = inode.now;
  inode.unsynced.clear();
  return true;
}

}  // namespace tocsin
