#include "storage/journal/inspect.h"

#include "base/clock.h"
#include "storage/journal/replay.h"

namespace tocsin::journal {
namespace {

/// One shard with every job that could be read.
struct Salvaging {
  std::unique_ptr<FolderLock> lock;
  NodeUse use{0};
  std::vector<std::unique_ptr<ShardStore>> shards;
  Scanned scanned;
  Report report;
};

Result<std::unique_ptr<Salvaging>> ReadAll(FileSystem& fs, const std::string& folder) {
  auto salvaged = std::make_unique<Salvaging>();
  TOCSIN_ASSIGN(salvaged->lock, fs.Lock(folder));
  salvaged->shards.push_back(std::make_unique<ShardStore>(salvaged->use, 0));
  std::optional<Replay> replay(std::in_place, salvaged->shards);
  const auto note = [&](const RecordHeader& header, std::string_view body, uint64_t) {
    replay->NoteTopics(header, body);
    return true;
  };
  TOCSIN_ASSIGN(const Scanned look, Scan(fs, folder, note));
  std::optional<Salvage> salvage;
  if (!look.damage.empty()) {
    // What the damaged places hide may name other topics, and say that fewer segments are needed.
    replay.emplace(salvaged->shards);
    salvage = {look.end.first_needed, [](std::string_view) {}};
    TOCSIN_ASSIGN(const Scanned again, Scan(fs, folder, note, &*salvage));
    salvage = {again.end.first_needed, [&](std::string_view bytes) { replay->NoteDamaged(bytes); }};
  }
  Scanned& scanned = salvaged->scanned;
  TOCSIN_ASSIGN(scanned, Scan(fs, folder, std::bind_front(&Replay::Record, &*replay), salvage ? &*salvage : nullptr));
  replay->Finish();
  if (scanned.segment_bytes == 0 && scanned.damage.empty()) {
    return Fail(Code::kNotFound, "{} holds no journal", folder);
  }
  Report& report = salvaged->report;
  report.segments = scanned.used.size();
  report.records = scanned.records;
  report.bytes = scanned.bytes;
  report.torn_tail_bytes = scanned.torn_tail_bytes;
  report.damage = scanned.damage;
  const HotTier& tier = salvaged->shards[0]->tier();
  std::unordered_set<Uid> lost = replay->damaged();
  for (Index index = 1; index < tier.end(); ++index) {
    if (tier.at(index).IsFree()) continue;
    report.jobs_live += tier.at(index).state == State::kScheduled;
    report.jobs_dead += tier.at(index).state == State::kDead;
    lost.erase(tier.at(index).uid);
  }
  report.jobs_lost = lost.size();
  return salvaged;
}

}  // namespace

Result<Report> Verify(FileSystem& fs, const std::string& folder) {
  TOCSIN_ASSIGN(const auto salvaged, ReadAll(fs, folder));
  return std::move(salvaged->report);
}

Result<Report> Repair(FileSystem& fs, const std::string& folder, const std::string& output) {
  TOCSIN_ASSIGN(const auto salvaged, ReadAll(fs, folder));
  TOCSIN_TRY(MakeFolder(fs, output));
  TOCSIN_ASSIGN(const auto names, fs.List(output));
  if (!names.empty()) return Fail(Code::kInvalidArgument, "{} is not empty: repair writes a new folder", output);

  RealClock clock;
  const Scanned& scanned = salvaged->scanned;
  if (scanned.records > 0) clock.Restore(scanned.past);
  constexpr uint64_t kSegmentBytes = 64 << 20;
  const uint64_t segment_bytes = scanned.segment_bytes != 0 ? scanned.segment_bytes : kSegmentBytes;
  // Ids and tokens go on where the old folder ended.
  const JournalEnd end{0, 0, 1, scanned.end.generation};
  TOCSIN_ASSIGN(const auto journal, Journal::Start({Durability::kFsync, Millis(50), segment_bytes, 1}, end,
                                                   std::make_unique<Segments>(fs, output, segment_bytes, true), clock));
  ShardStore& shard = *salvaged->shards[0];
  shard.Attach(*journal, clock.Now());
  shard.Rewrite(clock.Now());
  TOCSIN_TRY(journal->Close());
  return std::move(salvaged->report);
}

}  // namespace tocsin::journal
