// Journal: the append-only log under the embedded store, shared by all shards of a node. Each shard appends batches of
// records through its Lane. The committer writes all batches that have arrived, syncs once, and tells the lanes how far
// their records may be acknowledged (group commit).
//
// Threads: any lane calls Append, Release and the getters (one short lock for a batch, never during I/O). Only the
// committer calls Commit, Sync and SealRest, and only the maker calls Maintain. StartThreads starts both; tests drive
// them by hand instead.
//
// Invariants:
//  - acknowledged() never passes what the configured durability allows.
//  - After any failed write or sync nothing is acknowledged any more: failed() is true until the process restarts.
//  - A full disk is no failure. If it is still full at the stop, what it has no room for is not acknowledged.
//  - A segment is used again only after a seal that no longer needs it is durable.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/episode.h"
#include "base/result.h"
#include "storage/journal/format.h"
#include "storage/journal/segments.h"

namespace tocsin::journal {

enum class Durability : uint8_t {
  kFsync,     // acknowledged after the sync: survives a power cut
  kInterval,  // acknowledged after the write, synced every so often: a power cut may cost that interval
  kOs,        // acknowledged after the write into the page cache: survives a crash of the process, not of the machine
};

struct JournalOptions {
  Durability durability = Durability::kFsync;
  Millis sync_interval{50};
  uint64_t segment_bytes = 64 << 20;
  uint32_t lanes = 1;
  Millis slow_sync{500};  // a sync that takes longer is logged; 0: none is
};

/// Where recovery found the end of the journal.
struct JournalEnd {
  uint64_t segment = 0;  // 0: the journal is empty
  uint64_t offset = 0;
  uint64_t first_needed = 1;
  uint32_t generation = 0;  // of the last server
};

struct Appended {
  Lsn end = 0;
  uint64_t segment = 0;
};

/// Counts and times of the committer, for the metrics.
struct JournalFigures {
  std::atomic<uint64_t> syncs = 0;
  std::atomic<uint64_t> bytes_written = 0;
  std::atomic<uint64_t> records = 0;
};

class Journal {
 public:
  /// Begins generation end.generation + 1, durably, behind `end`.
  static Result<std::unique_ptr<Journal>> Start(const JournalOptions& options, const JournalEnd& end,
                                                std::unique_ptr<Segments> segments, const Clock& clock);
  ~Journal();

  /// Appends finished records of one lane; they stay together in one segment. If they are the lane's first in that
  /// segment, what `prologue` writes goes before them, so that each segment can be read without the ones before it.
  /// `now` is the moment in their headers.
  Appended Append(uint32_t lane, std::string records, Moment now, const std::function<void(std::string&)>& prologue);
  /// Records a step of the wall clock: after a reboot it must not be taken for time that has passed. Called every
  /// second.
  void KeepTime(Moment now);
  /// The lane does not need segments below `first_needed` once everything that it has appended so far is durable.
  void Release(uint32_t lane, uint64_t first_needed);
  /// An empty buffer for a batch, with the memory of an earlier one.
  std::string Buffer();

  /// Records below this position may be acknowledged.
  Lsn acknowledged() const { return acknowledged_.load(std::memory_order_acquire); }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  Error error() const;
  /// False while the disk is full: callers refuse changes that make the journal grow for good. There is room for
  /// others.
  bool has_room() const { return !full_.load(std::memory_order_relaxed); }
  /// While the disk is full there are only the rest of the last segment and those in reserve. What ends jobs may use
  /// more of that than what merely changes them, and some of it is kept for the records of the next start.
  bool has_room_for_changes() const { return has_room() || RoomLeft() > start_bytes_ + options_.segment_bytes / 16; }
  bool has_room_for_ends() const { return has_room() || RoomLeft() > start_bytes_; }
  /// The lane's prologue has up to this many bytes of topics: a start writes it again.
  void NotePrologue(uint32_t lane, uint64_t bytes);
  /// True while segments below first_needed() are not yet free.
  bool freeing() const { return segments_->first() < first_needed(); }
  /// Bytes appended and not yet written. Stores refuse new jobs beyond a bound.
  size_t pending_bytes() const { return pending_bytes_.load(std::memory_order_relaxed); }

  const Clock& clock() const { return clock_; }
  uint32_t generation() const { return generation_; }
  uint64_t segment_bytes() const { return options_.segment_bytes; }
  uint32_t lanes() const { return options_.lanes; }
  /// From the oldest segment that a lane needs to the last one.
  uint64_t span_bytes() const { return (last_segment() - first_needed() + 1) * options_.segment_bytes; }
  uint64_t last_segment() const { return segment_.load(std::memory_order_relaxed); }
  uint64_t first_needed() const { return first_needed_.load(std::memory_order_relaxed); }
  uint64_t NeededBy(uint32_t lane) const;
  size_t segments() const { return segments_->used(); }
  const JournalFigures& figures() const { return figures_; }
  /// Called after each sync with how long it took; before StartThreads.
  void OnSync(std::function<void(std::chrono::nanoseconds)> handler) { on_sync_ = std::move(handler); }

  /// `notify` runs on the committer after each Commit and after a failure.
  void OnAcknowledged(std::function<void()> notify) { notify_ = std::move(notify); }

  /// Writes everything appended so far, and syncs it if the durability says so. False if there was nothing.
  bool Commit();
  /// Syncs what is written and not synced (kInterval).
  void Sync();
  /// Appends and commits a seal unless one is the last record, so that damage to the records before it cannot pass for
  /// a torn tail.
  void SealRest();
  /// Frees segments that no lane needs, and prepares the next one.
  void Maintain();

  void StartThreads();
  /// Commits, seals and syncs what is left. No thread runs afterwards. Ok also if a full disk has no room for the last
  /// records: those are not acknowledged.
  Status Close();

 private:
  struct Batch {
    uint64_t segment = 0;
    uint64_t offset = 0;
    uint64_t first_needed = 0;  // of a seal; 0: it holds none
    bool closes = false;        // it is the close record of its segment
    std::string records;
  };

  Journal(JournalOptions options, const JournalEnd& end, std::unique_ptr<Segments> segments, const Clock& clock);

  Status Begin(const JournalEnd& end);
  // The caller holds mutex_.
  void AppendBatch(std::string records);
  void AppendSeal();
  void Rotate();

  uint64_t RoomLeft() const;
  Status WriteBatches(std::vector<Batch>& batches);
  /// Waits if the disk is full or the system opens no file for now; gives up at the stop.
  Status PrepareNext();
  Status Switch(uint64_t segment);
  Status SyncFile();
  void NoteSync(IoTime begun);
  /// Whether new jobs are refused, and why.
  void NoteRoom(const Status& room);
  void Fail(Error error);
  /// Nothing is written or acknowledged from here on; calls that wait get this error.
  void Halt(Error error);
  void StopThreads();
  void CommitterLoop();
  void MakerLoop();

  const JournalOptions options_;
  const Clock& clock_;
  std::unique_ptr<Segments> segments_;
  const uint32_t generation_;
  std::function<void()> notify_;
  std::function<void(std::chrono::nanoseconds)> on_sync_;
  JournalFigures figures_;

  // Guarded by mutex_: the tail, where the next records go, and the batches that wait for the committer.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> segment_ = 0;
  uint64_t offset_ = 0;
  std::vector<Batch> pending_;
  std::vector<std::string> buffers_;
  std::vector<uint64_t> lane_segment_;      // the segment that holds the lane's latest prologue
  std::vector<uint64_t> lane_needs_;        // the first segment that each lane needs
  std::vector<uint64_t> lane_prologue_;     // bytes, see NotePrologue
  std::atomic<uint64_t> start_bytes_;       // room that is kept for the next start
  std::atomic<uint64_t> first_needed_ = 1;  // the smallest of these, as in the latest seal appended
  std::atomic<int64_t> apart_ms_ = 0;       // utc - steady in the latest record appended
  bool sealed_ = true;                      // the last record appended is a seal
  bool stop_ = false;
  std::optional<Error> error_;

  // Written by the committer alone.
  std::unique_ptr<BlockWriter> writer_;
  uint64_t writing_segment_ = 0;
  Lsn written_ = 0;
  bool gave_up_ = false;                // at the stop there was no room for the last records
  std::atomic<uint64_t> freeable_ = 1;  // segments below it can be freed: first_needed of the latest durable seal
  std::atomic<Lsn> synced_ = 0;
  std::atomic<Lsn> acknowledged_ = 0;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> full_ = false;
  std::atomic<size_t> pending_bytes_ = 0;
  Episode slow_{"slow_disk"};
  Episode no_room_{"disk_full"};
  Episode no_files_{"open_files_used_up"};

  bool threads_ = false;          // the two below were started
  std::condition_variable make_;  // wakes the maker
  std::thread committer_;
  std::thread maker_;
};

}  // namespace tocsin::journal
