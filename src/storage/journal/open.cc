#include "storage/journal/open.h"

#include "storage/journal/replay.h"

namespace tocsin::journal {

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
  if (scanned.records > 0) clock.Restore(scanned.past);
  for (const auto& shard : node->shards_) node->jobs_recovered_ += shard->tier().size();
  for (const std::string& name : scanned.unfit) TOCSIN_TRY(fs.Remove(options.folder + "/" + name));

  const uint64_t segment_bytes = scanned.segment_bytes != 0 ? scanned.segment_bytes : options.segment_bytes;
  auto segments = std::make_unique<Segments>(fs, options.folder, segment_bytes, options.durability != Durability::kOs);
  segments->Adopt(scanned.used, scanned.free);
  const JournalOptions journal_options{options.durability, options.sync_interval, segment_bytes, options.shards};
  TOCSIN_ASSIGN(node->journal_, Journal::Start(journal_options, scanned.end, std::move(segments), clock));
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
    show(Kind::kGauge, "tocsin_journal_full", "1 while the disk is full and no jobs are accepted.",
         journal_->has_room() ? 0 : 1);
    show(Kind::kGauge, "tocsin_memory_jobs_bytes", "Memory that jobs take.", use_.memory_bytes);
  });
}

Status NodeStore::Close() {
  Status done = journal_->Close();
  for (const auto& shard : shards_) shard->lane().Drain();
  return done;
}

}  // namespace tocsin::journal
