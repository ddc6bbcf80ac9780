// The inside of SimFileSystem: files, names, and the changes of both that are not synced yet. Only sim_file.cc and
// sim_survivors.cc include it. State::mutex protects everything here.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/sim_file.h"

namespace tocsin::sim {

struct Change {
  uint64_t number = 0;  // in the order of all changes
  uint64_t offset;
  std::string bytes;
};

inline void Apply(std::string& data, uint64_t offset, std::string_view bytes) {
  if (data.size() < offset + bytes.size()) data.resize(offset + bytes.size());
  std::ranges::copy(bytes, data.begin() + static_cast<ptrdiff_t>(offset));
}

inline void Apply(std::string& data, const Change& change) { Apply(data, change.offset, change.bytes); }

struct Inode {
  std::string now;
  std::string durable;
  std::vector<Change> unsynced;
};

struct Names {
  std::map<std::string, std::shared_ptr<Inode>> files;
  std::set<std::string> folders{".", "/"};
};

inline std::string Parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// One change of names: the file `remove` goes, the file `add` comes, or the folder `folder` comes.
struct NameChange {
  uint64_t number = 0;
  std::string in;  // the folder whose sync makes it durable
  std::string remove;
  std::string add;
  std::string folder;
  std::shared_ptr<Inode> inode;
};

inline void Apply(Names& names, const NameChange& change) {
  if (!change.remove.empty()) names.files.erase(change.remove);
  if (!change.add.empty()) names.files[change.add] = change.inode;
  if (!change.folder.empty()) names.folders.insert(change.folder);
}

inline bool ChangesDisk(SimOp op) {
  switch (op) {
    case SimOp::kCreate:
    case SimOp::kWrite:
    case SimOp::kSync:
    case SimOp::kMakeDir:
    case SimOp::kRemove:
    case SimOp::kSyncDir:
      return true;
    default:
      return false;
  }
}

struct Fault {
  SimOp op;
  uint64_t left;
  Code code;
};

/// What happens to one operation. The operation that the power cut hits takes effect, unsynced, and fails.
struct Verdict {
  Status status;
  bool takes_effect = true;
  bool fault = false;
};

}  // namespace tocsin::sim

namespace tocsin {

struct SimFileSystem::State {
  mutable std::mutex mutex;  // protects all of it
  sim::Names now;
  sim::Names durable;
  std::vector<sim::NameChange> unsynced;
  uint64_t changes = 0;
  std::set<std::string> locks;
  std::vector<sim::Fault> faults;
  uint64_t quota = UINT64_MAX;
  std::array<uint64_t, static_cast<size_t>(SimOp::kAny) + 1> calls{};
  uint64_t io_count = 0;
  uint64_t power_lost_at = UINT64_MAX;
  bool power_lost = false;

  sim::Verdict Begin(SimOp op, const std::string& path) {
    ++calls[static_cast<size_t>(op)];
    ++calls[static_cast<size_t>(SimOp::kAny)];
    if (power_lost) return {Fail(Code::kIo, "{}: the power is off", path), false};
    if (sim::ChangesDisk(op) && io_count++ == power_lost_at) {
      power_lost = true;
      return {Fail(Code::kIo, "{}: the power went off", path)};
    }
    std::optional<Code> failed;
    for (sim::Fault& fault : faults) {
      if ((fault.op == op || fault.op == SimOp::kAny) && --fault.left == 0 && !failed) failed = fault.code;
    }
    std::erase_if(faults, [](const sim::Fault& fault) { return fault.left == 0; });
    if (failed) return {Fail(*failed, "{}: injected fault", path), false, true};
    return {};
  }

  uint64_t BytesUsed() const {
    uint64_t bytes = 0;
    for (const auto& [path, inode] : now.files) bytes += inode->now.size();
    return bytes;
  }

  void ChangeNames(sim::NameChange change) {
    change.number = ++changes;
    Apply(now, change);
    unsynced.push_back(std::move(change));
  }

  /// Writes as much as the quota leaves room for.
  Status Write(sim::Inode& inode, const std::string& path, uint64_t offset, std::string_view bytes) {
    const uint64_t end = offset + bytes.size();
    const uint64_t growth = end > inode.now.size() ? end - inode.now.size() : 0;
    const uint64_t used = BytesUsed();
    const uint64_t room = quota > used ? quota - used : 0;
    const bool fits = growth <= room;
    if (!fits) bytes.remove_suffix(std::min<uint64_t>(bytes.size(), growth - room));
    if (!bytes.empty()) {
      sim::Change change{++changes, offset, std::string(bytes)};
      Apply(inode.now, change);
      inode.unsynced.push_back(std::move(change));
    }
    if (!fits) return Fail(Code::kStorageFull, "cannot write {}: no space left on device", path);
    return {};
  }
};

}  // namespace tocsin
