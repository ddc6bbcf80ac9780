#include "storage/journal/inspect.h"

#include "base/clock.h"
#include "storage/journal/replay.h"

namespace tocsin::journal {
namespace {

/// One shard with every job that could be read.
struct Salvaged {
  std::unique_ptr<FolderLock> lock;
  NodeUse use{0};
  std::vector<std::unique_ptr<ShardStore>> shards;
  Scanned scanned;
  Report report;
};

Result<std::unique_ptr<Salvaged>> Salvage(FileSystem& fs, const std::string& folder) {
  auto salvaged = std::make_unique<Salvaged>();
  TOCSIN_ASSIGN(salvaged->lock, fs.Lock(folder));
  salvaged->shards.push_back(std::make_unique<ShardStore>(salvaged->use, 0));
  Replay replay(salvaged->shards);
  TOCSIN_ASSIGN(const Scanned look, Scan(fs, folder, [&](const RecordHeader& header, std::string_view body, uint64_t) {
                  replay.NoteTopics(header, body);
                  return true;
                }));
  // If a needed segment is missing, read the ones before it too.
  std::optional<uint64_t> from;
  if (!look.used.empty() && look.used.front().number > look.end.first_needed) from = look.end.first_needed;
  Scanned& scanned = salvaged->scanned;
  TOCSIN_ASSIGN(scanned, Scan(fs, folder, std::bind_front(&Replay::Record, &replay), from));
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
  for (Index index = 1; index < tier.end(); ++index) {
    if (tier.at(index).IsFree()) continue;
    report.jobs_live += tier.at(index).state == State::kScheduled;
    report.jobs_dead += tier.at(index).state == State::kDead;
  }
  return salvaged;
}

}  // namespace

Result<Report> Verify(FileSystem& fs, const std::string& folder) {
  TOCSIN_ASSIGN(const auto salvaged, Salvage(fs, folder));
  return std::move(salvaged->report);
}

Result<Report> Repair(FileSystem& fs, const std::string& folder, const std::string& output) {
  TOCSIN_ASSIGN(const auto salvaged, Salvage(fs, folder));
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
