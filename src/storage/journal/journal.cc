#include "storage/journal/journal.h"

#include <numeric>

#include "base/codec.h"
#include "base/log.h"
#include "base/result.h"

namespace tocsin::journal {
namespace {

constexpr size_t kWriteBytes = 1 << 20;
constexpr size_t kBuffersKept = 16;
constexpr size_t kBufferBytesKept = 1 << 20;
constexpr Millis kRestBeforeSeal{20};
constexpr Millis kRetryWhenFull{200};
constexpr uint64_t kPrologueOverhead = 128;  // of a prologue without its topics, at most

}  // namespace

Journal::Journal(JournalOptions options, const JournalEnd& end, std::unique_ptr<Segments> segments, const Clock& clock)
    : options_(options),
      clock_(clock),
      segments_(std::move(segments)),
      generation_(end.generation + 1),
      lane_segment_(options.lanes, 0),
      lane_needs_(options.lanes, end.first_needed),
      lane_prologue_(options.lanes, 0),
      start_bytes_(options.segment_bytes / 16),
      first_needed_(end.first_needed),
      writer_(std::make_unique<BlockWriter>(std::min<size_t>(kWriteBytes, options.segment_bytes))),
      freeable_(end.first_needed) {}

Journal::~Journal() { StopThreads(); }

Result<std::unique_ptr<Journal>> Journal::Start(const JournalOptions& options, const JournalEnd& end,
                                                std::unique_ptr<Segments> segments, const Clock& clock) {
  std::unique_ptr<Journal> journal(new Journal(options, end, std::move(segments), clock));
  TOCSIN_TRY(journal->Begin(end));
  return journal;
}

Status Journal::Begin(const JournalEnd& end) {
  const bool fresh = end.segment == 0;
  TOCSIN_ASSIGN(auto file, fresh ? segments_->TakeNext() : segments_->OpenUsed(end.segment));
  segment_ = fresh ? 1 : end.segment;
  offset_ = fresh ? kBlock : end.offset;
  std::string tail;
  if (!fresh) {
    // If only the process died, what recovery has just read may not be on the disk yet. Sync it: the records that
    // follow will say that it is durable.
    TOCSIN_TRY(file->Sync());
    TOCSIN_TRY(segments_->SyncBefore(segment_));
    TOCSIN_ASSIGN(tail, segments_->ReadTail(segment_, offset_));
  }
  writer_->Attach(std::move(file), offset_, tail);
  writing_segment_ = segment_;
  written_ = synced_ = acknowledged_ = segment_ * options_.segment_bytes + offset_;
  {
    const std::scoped_lock lock(mutex_);
    AppendSeal();
  }
  // The generation has to be durable before a token of it is given out, whatever the configured durability.
  Commit();
  Sync();
  if (failed()) return std::unexpected(error());
  return {};
}

Appended Journal::Append(uint32_t lane, std::string records, Moment now,
                         const std::function<void(std::string&)>& prologue) {
  std::string first;
  const auto fits = [&] { return offset_ + first.size() + records.size() + kCloseRoom <= options_.segment_bytes; };
  std::unique_lock lock(mutex_);
  if (lane_segment_[lane] != segment_ || !fits()) {
    // With many topics this takes a millisecond: the other lanes must not wait for it.
    lock.unlock();
    prologue(first);
    lock.lock();
  }
  apart_ms_ = (now.utc - now.steady).count();
  if (!fits()) Rotate();
  TOCSIN_CHECK(fits());
  lane_segment_[lane] = segment_;
  if (!first.empty()) AppendBatch(std::move(first));
  AppendBatch(std::move(records));
  sealed_ = false;
  wake_.notify_one();
  return {segment_ * options_.segment_bytes + offset_, segment_};
}

void Journal::AppendBatch(std::string records) {
  pending_bytes_.fetch_add(records.size(), std::memory_order_relaxed);
  const size_t size = records.size();
  pending_.push_back({.segment = segment_, .offset = offset_, .records = std::move(records)});
  offset_ += size;
}

void Journal::Rotate() {
  std::string record;
  EndRecord(record, BeginRecord(record, RecordType::kClose, kNoLane, generation_, clock_.Now()));
  AppendBatch(std::move(record));
  pending_.back().closes = true;
  ++segment_;
  offset_ = kBlock;
}

void Journal::AppendSeal() {
  uint64_t needed = segment_.load();
  for (const uint64_t lane : lane_needs_) needed = std::min(needed, lane);
  std::string record;
  const Moment now = clock_.Now();
  apart_ms_ = (now.utc - now.steady).count();
  const size_t begin = BeginRecord(record, RecordType::kSeal, kNoLane, generation_, now);
  EncodeSeal(record, {needed, clock_.Mark()});
  EndRecord(record, begin);
  if (offset_ + record.size() + kCloseRoom > options_.segment_bytes) Rotate();
  AppendBatch(std::move(record));
  pending_.back().first_needed = needed;
  first_needed_ = needed;
  sealed_ = true;
}

void Journal::KeepTime(Moment now) {
  // After a step by a fraction of a ms the timelines do not turn together, so that 1 ms is no step.
  if (std::abs((now.utc - now.steady).count() - apart_ms_.load(std::memory_order_relaxed)) <= 1) return;
  const std::scoped_lock lock(mutex_);
  AppendSeal();
  wake_.notify_one();
}

void Journal::Release(uint32_t lane, uint64_t first_needed) {
  const std::scoped_lock lock(mutex_);
  // The lane's own prologue is needed too: it defines the topic numbers of the records that follow it.
  lane_needs_[lane] = std::min(first_needed, lane_segment_[lane]);
  if (*std::ranges::min_element(lane_needs_) <= first_needed_) return;
  AppendSeal();
  wake_.notify_one();
}

void Journal::NotePrologue(uint32_t lane, uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  lane_prologue_[lane] = bytes + kPrologueOverhead;
  // For two starts: each may write some of them into the rest of a segment, and all of them into the next.
  const uint64_t prologues = std::reduce(lane_prologue_.begin(), lane_prologue_.end());
  start_bytes_ = std::max(options_.segment_bytes / 16, 4 * prologues);
  // The reserve has as much for other records.
  segments_->SetReserve(1 + 2 * start_bytes_ / options_.segment_bytes);
  make_.notify_one();
}

std::string Journal::Buffer() {
  const std::scoped_lock lock(mutex_);
  if (buffers_.empty()) return {};
  std::string buffer = std::move(buffers_.back());
  buffers_.pop_back();
  return buffer;
}

Error Journal::error() const {
  const std::scoped_lock lock(mutex_);
  return error_.value_or(Error{Code::kInternal, "the journal has not failed", {}});
}

uint64_t Journal::NeededBy(uint32_t lane) const {
  const std::scoped_lock lock(mutex_);
  return lane_needs_[lane];
}

uint64_t Journal::RoomLeft() const {
  const std::scoped_lock lock(mutex_);
  // Segments that have records, but no file yet, will take those in reserve.
  const uint64_t files = segments_->last() + segments_->spare();
  return files < segment_ ? 0 : (files - segment_ + 1) * options_.segment_bytes - offset_;
}

bool Journal::Commit() {
  std::vector<Batch> batches;
  {
    const std::scoped_lock lock(mutex_);
    if (pending_.empty() || failed()) return false;
    batches.swap(pending_);
  }
  const Status done = WriteBatches(batches);
  if (!done) {
    Fail(done.error());
    return false;
  }
  if (gave_up_) {
    // Some of a large call may be written.
    Halt({Code::kUnavailable, "the server stops while the disk is full: whether the change is stored is unknown", {}});
    return false;
  }
  {
    const std::scoped_lock lock(mutex_);
    for (Batch& batch : batches) {
      if (buffers_.size() == kBuffersKept) break;
      if (batch.records.capacity() < kRecordTarget || batch.records.capacity() > kBufferBytesKept) continue;
      batch.records.clear();
      buffers_.push_back(std::move(batch.records));
    }
  }
  if (notify_) notify_();
  return true;
}

Status Journal::WriteBatches(std::vector<Batch>& batches) {
  const Lsn synced = synced_.load(std::memory_order_relaxed);
  uint64_t first_needed = 0;
  size_t bytes = 0;
  for (Batch& batch : batches) {
    if (batch.segment != writing_segment_) TOCSIN_TRY(Switch(batch.segment));
    // A close record says that the next segment exists, so its file has to be durable first.
    if (batch.closes) {
      Status next = PrepareNext();
      if (gave_up_) break;
      TOCSIN_TRY(next);
    }
    Lsn lsn = batch.segment * options_.segment_bytes + batch.offset;
    for (size_t at = 0; at < batch.records.size(); at += RecordSize(&batch.records[at])) {
      PlaceRecord(&batch.records[at], lsn + at, synced);
      figures_.records.fetch_add(1, std::memory_order_relaxed);
    }
    TOCSIN_TRY(writer_->Append(batch.records));
    bytes += batch.records.size();
    lsn += batch.records.size();
    written_ = lsn;
    first_needed = std::max(first_needed, batch.first_needed);
  }
  TOCSIN_TRY(writer_->Flush());
  figures_.bytes_written.fetch_add(bytes, std::memory_order_relaxed);
  pending_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  const bool frees = first_needed > freeable_.load(std::memory_order_relaxed);
  if (options_.durability == Durability::kFsync || frees || gave_up_) TOCSIN_TRY(SyncFile());
  if (frees) {
    freeable_ = first_needed;
    const std::scoped_lock lock(mutex_);
    make_.notify_one();
  }
  acknowledged_.store(options_.durability == Durability::kFsync ? synced_.load() : written_, std::memory_order_release);
  return {};
}

Status Journal::PrepareNext() {
  while (true) {
    Status done = segments_->Prepare();
    if (done) return done;
    // The system opens no file for now, or the disk is full and another thread may make room. Nothing of the next
    // segment was written, so we can wait.
    const Code code = done.error().code;
    if (code != Code::kOverloaded && code != Code::kStorageFull) return done;
    std::unique_lock lock(mutex_);
    const bool waits = threads_ || code == Code::kOverloaded;
    gave_up_ = waits ? wake_.wait_for(lock, kRetryWhenFull, [this] { return stop_; }) : stop_;
    if (gave_up_ || !waits) return done;
  }
}

Status Journal::Switch(uint64_t segment) {
  TOCSIN_TRY(writer_->Flush());
  TOCSIN_TRY(SyncFile());
  TOCSIN_ASSIGN(auto next, segments_->TakeNext());
  TOCSIN_CHECK(segments_->last() == segment);
  writer_->Attach(std::move(next), kBlock, {});
  writing_segment_ = segment;
  const std::scoped_lock lock(mutex_);
  make_.notify_one();
  return {};
}

Status Journal::SyncFile() {
  const IoTime begun = clock_.IoNow();
  TOCSIN_TRY(writer_->Sync());
  NoteSync(begun);
  figures_.syncs.fetch_add(1, std::memory_order_relaxed);
  synced_.store(written_, std::memory_order_relaxed);
  return {};
}

void Journal::NoteSync(IoTime begun) {
  const IoTime now = clock_.IoNow();
  if (on_sync_) on_sync_(now - begun);
  if (options_.slow_sync == Millis(0)) return;
  if (now - begun <= options_.slow_sync) return slow_.End(now);
  const auto took = std::chrono::duration_cast<Millis>(now - begun);
  const LogField fields[] = {{"sync_ms", took.count()}, {"limit_ms", options_.slow_sync.count()}};
  slow_.Begin(now, fields);
}

void Journal::Sync() {
  if (failed() || synced_.load(std::memory_order_relaxed) == written_) return;
  if (const Status done = SyncFile(); !done) Fail(done.error());
}

void Journal::SealRest() {
  {
    const std::scoped_lock lock(mutex_);
    if (sealed_ || failed()) return;
    AppendSeal();
  }
  Commit();
  Sync();
}

void Journal::Maintain() {
  if (failed()) return;
  const auto stops = [this] {
    const std::scoped_lock lock(mutex_);
    return stop_;
  };
  // A file at a time: meanwhile the committer may use up those that are there, others can be freed, and a stop does not
  // wait for the whole reserve.
  Status done;
  do {
    done = segments_->Free(freeable_);
    if (done) done = segments_->Prepare();
    if (done) done = segments_->Reserve();
  } while (done && !segments_->prepared() && !stops());
  if (done && !segments_->prepared()) return;
  if (done || done.error().code == Code::kStorageFull || done.error().code == Code::kOverloaded) {
    NoteRoom(done);
  } else {
    Fail(done.error());
  }
}

void Journal::NoteRoom(const Status& room) {
  full_ = !room;
  const IoTime now = clock_.IoNow();
  const bool no_files = !room && room.error().code == Code::kOverloaded;
  if (room || no_files) no_room_.End(now);
  if (room || !no_files) no_files_.End(now);
  if (room) return;
  const LogField fields[] = {{"error", room.error().message}, {"new_jobs", "refused"}};
  (no_files ? no_files_ : no_room_).Begin(now, fields);
}

void Journal::Fail(Error error) {
  error.message += "; nothing is acknowledged any more: restart to recover";
  error.code = Code::kStorageFailed;
  Halt(std::move(error));
}

void Journal::Halt(Error error) {
  {
    const std::scoped_lock lock(mutex_);
    if (error_) return;
    error_ = std::move(error);
    pending_.clear();
  }
  failed_.store(true, std::memory_order_release);
  if (notify_) notify_();
}

void Journal::StartThreads() {
  threads_ = true;
  committer_ = std::thread([this] { CommitterLoop(); });
  maker_ = std::thread([this] { MakerLoop(); });
  pthread_setname_np(committer_.native_handle(), "tocsin-commit");
  pthread_setname_np(maker_.native_handle(), "tocsin-segment");
}

void Journal::CommitterLoop() {
  auto next_sync = std::chrono::steady_clock::now() + options_.sync_interval;
  while (true) {
    bool rested = false;
    {
      std::unique_lock lock(mutex_);
      const auto work = [this] { return stop_ || !pending_.empty() || failed(); };
      if (sealed_ && synced_.load(std::memory_order_relaxed) == written_) {
        wake_.wait(lock, work);
      } else {
        rested = !wake_.wait_for(lock, std::min(kRestBeforeSeal, options_.sync_interval), work);
      }
      if (stop_ || failed()) return;
    }
    Commit();
    if (rested) SealRest();
    if (options_.durability == Durability::kInterval && std::chrono::steady_clock::now() >= next_sync) {
      Sync();
      next_sync = std::chrono::steady_clock::now() + options_.sync_interval;
    }
  }
}

void Journal::MakerLoop() {
  while (true) {
    Maintain();
    std::unique_lock lock(mutex_);
    if (stop_ || failed()) return;
    if (full_) {
      make_.wait_for(lock, kRetryWhenFull, [this] { return stop_; });
    } else {
      make_.wait(lock, [this] { return stop_ || !segments_->prepared() || segments_->first() < freeable_; });
    }
    if (stop_) return;
  }
}

void Journal::StopThreads() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
    wake_.notify_all();
    make_.notify_all();
  }
  if (committer_.joinable()) committer_.join();
  if (maker_.joinable()) maker_.join();
}

Status Journal::Close() {
  StopThreads();
  notify_ = nullptr;  // the loops may have ended already: the caller runs the answers that still wait
  KeepTime(clock_.Now());
  while (Commit()) {
  }
  SealRest();
  Sync();
  if (!failed()) return {};
  if (!gave_up_) return std::unexpected(error());
  LogWarn("the disk is full: the last changes were not stored, and nobody was told that they are");
  return {};
}

}  // namespace tocsin::journal
