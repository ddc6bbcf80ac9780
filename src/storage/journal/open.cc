#include "storage/journal/open.h"

#include <algorithm>

#include "storage/journal/replay.h"

namespace tocsin::journal {
namespace {

/// An empty file, made when the first segment is durable: a folder that has it and no segment has lost its jobs. One
/// without it is new, or its first start was interrupted.
constexpr std::string_view kMark = "JOURNAL";

Result<bool> IsMarked(FileSystem& fs, const std::string& folder) {
  TOCSIN_ASSIGN(const auto names, fs.List(folder));
  return std::ranges::find(names, kMark) != names.end();
}

Status Mark(FileSystem& fs, const std::string& folder) {
  const auto made = fs.Open(fmt::format("{}/{}", folder, kMark), OpenMode::kCreate);
  Status done = made ? fs.SyncDir(folder) : std::unexpected(made.error());
  // A server must also start on a full disk. The next start tries again.
  if (!done && done.error().code != Code::kStorageFull) return done;
  return {};
}

}  // namespace

Result<std::unique_ptr<NodeStore>> NodeStore::Open(FileSystem& fs, const Options& options, Clock& clock) {
  TOCSIN_TRY(MakeFolder(fs, options.folder));
  std::unique_ptr<NodeStore> node(new NodeStore(options));
  TOCSIN_ASSIGN(node->lock_, fs.Lock(options.folder));
  for (uint32_t shard = 0; shard < options.shards; ++shard) {
    node->shards_.push_back(std::make_unique<ShardStore>(node->use_, shard));
  }

  Replay replay(node->shards_);
  Scanned& scanned = node->scanned_;
  TOCSIN_ASSIGN(scanned, Scan(fs, options.folder, std::bind_front(&Replay::Record, &replay)));
  TOCSIN_TRY(RefuseDamage(scanned));
  replay.Finish();
  TOCSIN_ASSIGN(const bool marked, IsMarked(fs, options.folder));
  if (marked && scanned.used.empty() && !options.begin_anew) {
    return Fail(Code::kCorrupt,
                "{} held a journal, and its segments are gone: put them back, or start once with --new to begin "
                "without any job",
                options.folder);
  }
  if (scanned.records > 0) clock.Restore(scanned.past);
  for (const auto& shard : node->shards_) node->jobs_recovered_ += shard->tier().size();
  for (const std::string& name : scanned.unfit) TOCSIN_TRY(fs.Remove(options.folder + "/" + name));

  const uint64_t segment_bytes = scanned.segment_bytes != 0 ? scanned.segment_bytes : options.segment_bytes;
  auto segments = std::make_unique<Segments>(fs, options.folder, segment_bytes, options.durability != Durability::kOs,
                                             options.prewrite);
  segments->Adopt(scanned.used, scanned.free);
  const JournalOptions journal_options{options.durability, options.sync_interval, segment_bytes, options.shards,
                                       options.slow_sync};
  TOCSIN_ASSIGN(node->journal_, Journal::Start(journal_options, scanned.end, std::move(segments), clock));
  if (!marked) TOCSIN_TRY(Mark(fs, options.folder));
  const Moment now = clock.Now();
  for (const auto& shard : node->shards_) shard->Attach(*node->journal_, now);
  node->journal_->OnAcknowledged([raw = node.get()] {
    for (const auto& shard : raw->shards_) shard->lane().Wake();
  });
  return node;
}

void NodeStore::Observe(metrics::Registry& metrics) {
  journal_->OnSync(
      [histogram = metrics.GetHistogram("tocsin_journal_sync_seconds", "How long a sync of the journal took.")](
          std::chrono::nanoseconds took) { histogram->Record(took); });
  shown_ = metrics.AddCollector([this](metrics::Samples& samples) {
    using metrics::Kind;
    const JournalFigures& figures = journal_->figures();
    const auto show = [&](Kind kind, std::string_view name, std::string_view help, uint64_t value) {
      samples.Add(kind, name, help, {}, static_cast<double>(value));
    };
    show(Kind::kCounter, "tocsin_journal_syncs_total", "Syncs of the journal.", figures.syncs);
    show(Kind::kCounter, "tocsin_journal_records_total", "Records written to the journal.", figures.records);
    show(Kind::kCounter, "tocsin_journal_bytes_total", "Bytes of records written to the journal.",
         figures.bytes_written);
    show(Kind::kGauge, "tocsin_journal_segments", "Segment files that hold needed records.", journal_->segments());
    show(Kind::kGauge, "tocsin_journal_span_bytes", "From the oldest needed segment to the last.",
         journal_->span_bytes());
    show(Kind::kGauge, "tocsin_journal_pending_bytes", "Bytes that wait for the committer.", journal_->pending_bytes());
    show(Kind::kGauge, "tocsin_journal_full",
         "1 while the disk is full, or no file can be opened, and no jobs are accepted.", journal_->has_room() ? 0 : 1);
    show(Kind::kGauge, "tocsin_memory_jobs_bytes", "Memory that jobs and topics take.", use_.memory_bytes);
  });
}

Status NodeStore::Close() {
  Status done = journal_->Close();
  for (const auto& shard : shards_) shard->lane().DrainAll();
  return done;
}

}  // namespace tocsin::journal
