#include <utility>

#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "model/placement.h"
#include "server/backing.h"
#include "server/memory_plan.h"
#include "server/ownership.h"
#include "storage/journal/open.h"
#include "storage/journal/topic_room.h"

namespace tocsin {
namespace {

journal::Options JournalOptions(const Config& config, PushMemory& push_memory) {
  return {.folder = config.data_dir,
          .shards = static_cast<uint32_t>(config.shards),
          .durability = static_cast<journal::Durability>(config.durability),
          .sync_interval = config.durability_interval,
          .segment_bytes = config.journal_segment_size,
          .memory_limit_bytes = MemoryPlan(config).jobs_bytes,
          .push_memory = &push_memory,
          .topics = static_cast<size_t>(config.limits_topics),
          .prewrite = config.clock == ClockKind::kReal,
          .slow_sync = config.log_slow_sync,
          .begin_anew = config.begin_anew};
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

/// Whoever may write to the folder can remove or replace the journal. Volumes of containers are often like this, so it
/// is no error.
void WarnIfOthersMayWrite(const std::string& folder) {
  struct stat info{};
  if (::stat(folder.c_str(), &info) < 0 || (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return;
  LogWarn("data folder {0} has mode {1:04o}: other users can change what is in it; do: chmod 700 {0}", folder,
          info.st_mode & 07777);
}

/// Topics beyond that number would be refused one day, long before limits.topics says so.
void WarnIfTopicsDoNotFit(int topics, const journal::Journal& journal) {
  const uint64_t fit = journal::TopicsThatFit(journal.segment_bytes(), journal.lanes());
  if (static_cast<uint64_t>(topics) <= fit) return;
  LogWarn(
      "limits.topics is {}, but a segment of the journal has room for the settings of about {} topics with {} "
      "shards: have fewer shards, lower limits.topics, or raise journal.segment_size, which a new data folder takes",
      topics, fit, journal.lanes());
}

class JournalBacking final : public Backing {
 public:
  explicit JournalBacking(BackingParts parts)
      : parts_(std::move(parts)),
        cluster_(std::make_shared<SingleNode>("journal", parts_.self, &parts_.clock)),
        metrics_(parts_.metrics),
        file_system_(MakePosixFileSystem()) {}

  Status Open(const std::function<bool()>& /*go_on*/) override {
    TOCSIN_ASSIGN(node_, journal::NodeStore::Open(*file_system_, JournalOptions(parts_.config, parts_.push_memory),
                                                  parts_.clock));
    WarnIfOthersMayWrite(parts_.config.data_dir);
    WarnIfTopicsDoNotFit(parts_.config.limits_topics, node_->journal());
    for (uint32_t shard = 0; shard < parts_.loops.size(); ++shard) node_->Bind(shard, *parts_.loops[shard]);
    node_->Observe(parts_.metrics);
    return {};
  }
  Store& store(uint32_t shard) override { return node_->store(shard); }
  std::shared_ptr<Cluster> cluster() override { return cluster_; }
  NodeReading Read() override {
    return {.disk_full = !node_->journal().has_room(),
            .memory_limit = MemoryPlan(parts_.config).jobs_bytes,
            .memory_used = node_->memory_bytes()};
  }
  std::string Describe() const override {
    return fmt::format("data     {} ({})", parts_.config.data_dir, Recovery(*node_));
  }
  std::optional<uint64_t> jobs_recovered() const override { return node_->jobs_recovered(); }
  void Start() override {
    node_->Start();
    metrics_.members->Set(1);
    metrics_.groups->Set(kGroups);
    metrics_.owned_groups->Set(kGroups);
  }
  void Leave(Task done) override { done(); }
  Status Close() override { return node_->Close(); }

 private:
  const BackingParts parts_;
  const std::shared_ptr<Cluster> cluster_;
  ClusterMetrics metrics_;
  std::unique_ptr<FileSystem> file_system_;
  std::unique_ptr<journal::NodeStore> node_;
};

}  // namespace

std::unique_ptr<Backing> MakeJournalBacking(BackingParts parts) {
  return std::make_unique<JournalBacking>(std::move(parts));
}

}  // namespace tocsin
