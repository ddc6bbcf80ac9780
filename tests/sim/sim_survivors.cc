// What a disk may hold after a power cut.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "sim/sim_disk.h"
#include "sim/sim_file.h"

namespace tocsin {
namespace {

using namespace sim;

constexpr uint64_t kSector = 512;

class Chooser {
 public:
  Chooser(Survive choice, uint64_t seed) : choice_(choice), random_(seed) {}

  uint64_t Below(uint64_t end) { return random_() % end; }

  /// Learns the numbers of all unsynced changes, before it is asked about any of them.
  void Learn(const std::set<uint64_t>& numbers, uint64_t last_write) {
    last_write_ = last_write;
    if (choice_ == Survive::kNothing) cut_ = 0;
    if (choice_ != Survive::kPrefix) return;
    const uint64_t kept = Below(numbers.size() + 1);
    cut_ = kept == 0 ? 0 : *std::next(numbers.begin(), static_cast<ptrdiff_t>(kept - 1));
  }

  bool Keeps(uint64_t number) const { return number <= cut_; }

  void Leave(std::string& data, const Change& change) {
    if (!Keeps(change.number)) return;
    if (choice_ == Survive::kTorn && change.number == last_write_) {
      return Apply(data, change.offset, std::string_view(change.bytes).substr(0, Below(change.bytes.size())));
    }
    if (choice_ != Survive::kSectors) return Apply(data, change);
    std::string_view rest = change.bytes;
    for (uint64_t offset = change.offset; !rest.empty();) {
      const auto size = std::min<uint64_t>(rest.size(), kSector - offset % kSector);
      if (Below(2) == 0) Apply(data, offset, rest.substr(0, size));
      rest.remove_prefix(size);
      offset += size;
    }
  }

  /// The names that a disk may show: the durable ones, and of the changes since those that it keeps.
  Names Leave(const Names& durable, const std::vector<NameChange>& unsynced) {
    std::map<std::string, uint64_t> kept;  // for each folder, how many of its first changes
    if (choice_ == Survive::kSectors) {
      for (const NameChange& change : unsynced) ++kept[change.in];
      for (auto& [folder, count] : kept) count = Below(count + 1);
    }
    Names names = durable;
    for (const NameChange& change : unsynced) {
      if (!Keeps(change.number)) continue;
      if (choice_ == Survive::kSectors) {
        uint64_t& left = kept[change.in];
        if (left == 0) continue;
        --left;
      }
      Apply(names, change);
    }
    return names;
  }

 private:
  const Survive choice_;
  std::mt19937_64 random_;
  uint64_t cut_ = UINT64_MAX;
  uint64_t last_write_ = 0;
};

bool HasFolders(const Names& names, const std::string& folder) {
  if (!names.folders.contains(folder)) return false;
  const std::string parent = Parent(folder);
  return parent == folder || HasFolders(names, parent);
}

}  // namespace

std::unique_ptr<SimFileSystem> SimFileSystem::Survivors(Survive choice, uint64_t seed) const {
  const std::scoped_lock lock(state_->mutex);
  std::set<uint64_t> numbers;
  uint64_t last_write = 0;
  for (const NameChange& change : state_->unsynced) numbers.insert(change.number);
  for (const Names* names : {&state_->now, &state_->durable}) {
    for (const auto& [path, inode] : names->files) {
      for (const Change& change : inode->unsynced) {
        numbers.insert(change.number);
        last_write = std::max(last_write, change.number);
      }
    }
  }

  Chooser chooser(choice, seed);
  chooser.Learn(numbers, last_write);
  const Names names = chooser.Leave(state_->durable, state_->unsynced);
  auto survivors = std::make_unique<SimFileSystem>();
  State& state = *survivors->state_;
  for (const std::string& folder : names.folders) {
    if (HasFolders(names, folder)) state.now.folders.insert(folder);
  }
  for (const auto& [path, inode] : names.files) {
    if (!HasFolders(names, Parent(path))) continue;
    auto left = std::make_shared<Inode>();
    left->durable = inode->durable;
    for (const Change& change : inode->unsynced) chooser.Leave(left->durable, change);
    left->now = left->durable;
    state.now.files[path] = std::move(left);
  }
  state.durable = state.now;
  return survivors;
}

}  // namespace tocsin
