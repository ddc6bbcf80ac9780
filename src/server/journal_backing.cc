#include "server/journal_backing.h"

#include <utility>

#include "model/placement.h"

namespace tocsin {
namespace {

journal::Options JournalOptions(const Config& config) {
  return {.folder = config.data_dir,
          .shards = static_cast<uint32_t>(config.shards),
          .durability = static_cast<journal::Durability>(config.durability),
          .sync_interval = config.durability_interval,
          .segment_bytes = config.journal_segment_size,
          .memory_limit_bytes = config.memory_limit};
}
// The cast above: one order for both.
static_assert(static_cast<int>(journal::Durability::kFsync) == static_cast<int>(Durability::kFsync));
static_assert(static_cast<int>(journal::Durability::kInterval) == static_cast<int>(Durability::kInterval));
static_assert(static_cast<int>(journal::Durability::kOs) == static_cast<int>(Durability::kOs));

std::string Recovery(const journal::NodeStore& node) {
  const journal::Scanned& scanned = node.scanned();
  if (scanned.segment_bytes == 0) return "a new folder";
  std::string text = fmt::format("jobs recovered: {}, from {} records", node.jobs_recovered(), scanned.records);
  if (scanned.torn_tail_bytes > 0) {
    text += fmt::format("; {} bytes of an unfinished write cut off", scanned.torn_tail_bytes);
  }
  return text;
}

}  // namespace

JournalBacking::JournalBacking(BackingParts parts)
    : parts_(std::move(parts)),
      cluster_(std::make_shared<SingleNode>("journal", parts_.self, &parts_.clock)),
      metrics_(parts_.metrics),
      file_system_(MakePosixFileSystem()) {}

Status JournalBacking::Open(const std::function<bool()>&) {
  auto node = journal::NodeStore::Open(*file_system_, JournalOptions(parts_.config), parts_.clock);
  if (!node) return std::unexpected(std::move(node).error());
  node_ = *std::move(node);
  if (parts_.virtual_clock != nullptr) parts_.virtual_clock->CatchUp();
  for (uint32_t shard = 0; shard < parts_.loops.size(); ++shard) node_->Bind(shard, *parts_.loops[shard]);
  node_->Observe(parts_.metrics);
  return {};
}

void JournalBacking::Start() {
  node_->Start();
  metrics_.members->Set(1);
  metrics_.owned_groups->Set(kGroups);
}

std::string JournalBacking::Describe() const {
  return fmt::format("data     {} ({})", parts_.config.data_dir, Recovery(*node_));
}

}  // namespace tocsin
