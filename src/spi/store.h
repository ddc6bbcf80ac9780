// Store: where jobs live. One Store object serves the slots of one shard; a node has one for each shard. `journal` is
// the embedded one. A store that many nodes share, such as `redis`, also implements SharedStore (spi/shared_store.h).
// Every store passes the same contract suite (spi/contract/store_contract.h).
//
// Threads: every method is called on the shard's thread, and `done` runs on it too: within the call, or later through
// the shard's Loop. `done` runs exactly once, also after a failure.
//
// What every store promises:
//  - What `done` reports as ok is durable at the configured level before `done` runs.
//  - The move from scheduled to leased is one atomic step. Only the current token settles.
//  - After an error the outcome is unknown: it may or may not have happened, but wholly or not at all for each job. An
//    error for a batch never hides what was done: if it is known for some of the jobs, each has its own outcome.
//  - kUnavailable is an error that passes: a server behind the store cannot be reached. kStorageFailed does not pass.
//  - Effects are visible to later calls at once, in the order of the calls, also before they are durable.
//  - `now` is the caller's clock; a store with a clock of its own (Redis) may use that instead.
//
// The unit is a batch of one topic. Views in requests need to live only until the call returns. Calls for a topic that
// the store does not know answer NoSuchTopic (model/topic.h).
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/job.h"
#include "model/load.h"
#include "model/selector.h"
#include "model/topic.h"

namespace tocsin {

template <class T>
using Done = std::move_only_function<void(Result<T>)>;

/// What `Advance` found.
struct Advanced {
  std::vector<std::string> ready;  // topics that have jobs to claim, and had none when last reported or claimed empty
  Time next_steady = kNever;       // when Advance has work next, on each timeline
  Time next_utc = kNever;
  bool more = false;             // the budget ran out: call again soon
  std::optional<Error> trouble;  // a server behind the store did not answer: its jobs are not looked at
  bool cut_off = false;          // with trouble: none of the servers behind the store answers
};

struct Page {
  JobBatch jobs;
  size_t looked = 0;   // at so many jobs, whether they match or not
  std::string cursor;  // empty: the end
};

enum class SweepKind : uint8_t {
  kRedrive,    // dead jobs become due now, with all their attempts
  kPurgeDead,  // dead jobs are removed
  kPurge,      // all scheduled and dead jobs are removed; leased ones stay
  kEmpty,      // all jobs are removed: the topic is about to be dropped
};

struct Swept {
  size_t changed = 0;
  std::string cursor;  // empty: the end
};

/// A job whose attempt has failed. Times are on the steady timeline.
struct FailedJob {
  uint32_t attempts = 0;  // that have failed; 0: there is none
  Uid uid = 0;
  Time at{};
  Time until{};  // if the job has not failed again by then, it succeeded, is dead, or waits for a consumer
};

/// Of the jobs that failed lately, some that failed most often. Several, so that one which ends or dies does not hide
/// those that go on failing.
struct WorstJobs {
  static constexpr size_t kMost = 8;
  std::vector<FailedJob> live = {};  // that may fail again, the one that failed most often first
  FailedJob dead = {};               // one that died

  void Take(const FailedJob& failed, bool died) {
    Forget(failed.uid);
    if (died) {
      if (failed.attempts >= dead.attempts || failed.at >= dead.until) dead = failed;
      return;
    }
    std::erase_if(live, [&](const FailedJob& each) { return failed.at >= each.until; });
    live.insert(std::ranges::upper_bound(live, failed.attempts, std::greater{}, &FailedJob::attempts), failed);
    if (live.size() > kMost) live.pop_back();
  }
  /// The job has ended, or is scheduled with all its attempts again.
  void Forget(Uid uid) {
    std::erase_if(live, [uid](const FailedJob& each) { return each.uid == uid; });
    if (dead.uid == uid) dead = {};
  }
  FailedJob Worst() const { return live.empty() ? FailedJob{} : live.front(); }
};

/// One topic's figures in one store. The first fields are gauges, the others count since the store was opened. Always:
///   recovered + accepted == scheduled + leased + dead + acked + cancelled + purged
struct TopicFigures {
  Topic topic;
  uint64_t scheduled = 0;  // with those that are ready
  uint64_t ready = 0;
  uint64_t leased = 0;
  uint64_t dead = 0;
  uint64_t bytes = 0;  // own ids, keys, headers, payloads of the three above
  /// When the first ready job was due, on the utc timeline. kNever if there is none, or the store does not know.
  Time oldest_due = kNever;
  /// As far as they failed, and ended, through this store.
  WorstJobs worst = {};

  uint64_t recovered = 0;
  uint64_t accepted = 0;
  uint64_t delivered = 0;
  uint64_t acked = 0;
  uint64_t nacked = 0;
  uint64_t expired = 0;
  uint64_t died = 0;
  uint64_t redriven = 0;
  uint64_t cancelled = 0;  // with those that a replace removed
  uint64_t purged = 0;
};

/// A part of the topics that a store holds.
struct TopicsPage {
  std::vector<TopicFigures> topics;
  std::string cursor;  // empty: the end
};

/// Room in memory for the jobs that a call hands over. A store asks for it before it copies a job, or leases it. One
/// thread at a time uses it: the store's, from the call to its answer. It outlives the call; null: there is room for
/// anything.
class JobRoom {
 public:
  virtual ~JobRoom() = default;

  /// Raises it to this many jobs with this many bytes, reasons included. False, without effect, if there is no room.
  [[nodiscard]] virtual bool Reach(size_t jobs, size_t bytes) = 0;
  /// Lowers it to that, about.
  virtual void Lower(size_t jobs, size_t bytes) = 0;
};

/// A claim ends with the job that makes it so many bytes: it is one turn of its shard.
constexpr size_t kClaimBytes = 2 << 20;

/// The most that a claim or a page may take.
struct JobMax {
  size_t jobs = 0;
  JobRoom* room = nullptr;
  std::string_view holder = {};  // of a claim: who gets the jobs, up to kHolderBytesMax
};

class Store {
 public:
  virtual ~Store() = default;

  /// Creates the topic or takes its new settings (`slots` never changes). Idempotent; called on every shard's store.
  /// kConflict if another node has stored other settings under this version or a later one, or has dropped the topic
  /// and created it again: Topics() then has those settings.
  virtual void PutTopic(const Topic& topic, Done<void> done) = 0;
  /// Takes earlier settings under a new version, because another shard's store has refused the last change. Uses room
  /// that other changes leave alone.
  virtual void PutBackTopic(const Topic& topic, Done<void> done) { PutTopic(topic, std::move(done)); }
  /// Removes the topic with all its jobs. Ok if there is none. After an error it can be called again, even if Topics()
  /// no longer has the topic. kConflict if another node has dropped it and created it again: Topics() then has that
  /// one.
  virtual void DropTopic(std::string_view topic, Done<void> done) = 0;
  /// The topic with its figures, if it holds it. Its cost does not depend on the number of topics.
  virtual std::optional<TopicFigures> FindFigures(std::string_view topic) const = 0;
  /// Up to `limit` of the topics that it holds, with their figures. Every topic that is there during the whole walk is
  /// met once.
  virtual TopicsPage TopicsFrom(std::string_view cursor, size_t limit) const = 0;
  /// All of them at once, which takes long if there are many: for the start, and for tests.
  std::vector<TopicFigures> Topics() const {
    TopicsPage page = TopicsFrom({}, kTopicsEach);
    while (!page.cursor.empty()) {
      TopicsPage next = TopicsFrom(page.cursor, kTopicsEach);
      std::ranges::move(next.topics, std::back_inserter(page.topics));
      page.cursor = std::move(next.cursor);
    }
    return std::move(page.topics);
  }

  /// One outcome for each job, in their order; a job sees those before it in the batch. An own id is taken by (key,
  /// id), or by a stored server id with that text; it stays taken while a finished job is retained. kReplace always
  /// stores a new job, with a new uid and a new timer, also for the same content; it needs room only for what it adds.
  virtual void Submit(std::string_view topic, std::span<const NewJob> jobs, Moment now,
                      Done<std::vector<Submitted>> done) = 0;

  /// Leases up to `max` of the jobs that Advance made ready, in (due, sequence) order within a slot. Empty when none is
  /// ready or the topic is paused; fewer, but at least one, if they are large (kClaimBytes). Never more than there is
  /// room for: if there is none for the first job, nothing is leased, and the batch says no_room.
  virtual void Claim(std::string_view topic, JobMax max, Millis lease, Moment now, Done<JobBatch> done) = 0;

  /// A retry, after a nack or an expired lease, is due on the steady timeline after the given delay or the topic's
  /// BackOff (seeded with the uid). A lease past its deadline is current until Advance has rolled it back.
  virtual void Settle(std::string_view topic, std::span<const Settlement> settlements, Moment now,
                      Done<std::vector<SettleOutcome>> done) = 0;

  /// A job that is not as the amendment has `seen` it stays, in one step with the change: kChanged. kReschedule of a
  /// job that waits for a count alone makes it wait for either.
  virtual void Amend(std::string_view topic, std::span<const Amendment> amendments, Moment now,
                     Done<std::vector<Amended>> done) = 0;

  /// A job that has fired, by either way or by kFire, no longer counts: kNotCounted for any event.
  virtual void Count(std::string_view topic, std::span<const CountEvent> events, Moment now,
                     Done<std::vector<Counted>> done) = 0;

  /// One job for each reference, in their order; one with uid 0 instead of a job that is not stored. If there is no
  /// room for all of them, the batch is empty and says no_room.
  virtual void Find(std::string_view topic, std::span<const JobRef> jobs, JobRoom* room, Moment now,
                    Done<JobBatch> done) = 0;

  /// Every job that matches during the whole listing is listed; once, except that a store whose tables change their
  /// size meanwhile may list some again. In no particular order. A call looks at a bounded number of jobs and bytes, so
  /// that a page may hold few jobs or none though more follow. Never more than there is room for: if there is none for
  /// the first job, the page is empty and its batch says no_room. kInvalidArgument for a cursor that is not one.
  virtual void List(std::string_view topic, const Selector& what, std::string_view cursor, JobMax max, Moment now,
                    Done<Page> done) = 0;

  /// Changes at most `limit` jobs and looks at a bounded number: call again with the cursor, until there is none. Every
  /// job that is there during all of it is met. kInvalidArgument for a cursor that is not one.
  virtual void Sweep(std::string_view topic, SweepKind kind, std::string_view cursor, size_t limit, Moment now,
                     Done<Swept> done) = 0;

  /// How many scheduled jobs of the topic, or of all topics if it is empty, become due in each step, by the due time
  /// that is shown. Jobs that wait for a count alone are in none, those that are ready are `due`. Does a bounded amount
  /// of work: if it has counted fewer steps, but at least one, call again for those After() them. kInvalidArgument if
  /// the store keeps no counts, and would have to count too much.
  virtual void Load(std::string_view topic, const LoadSpan& span, Moment now, Done<LoadCounts> done) = 0;

  /// Makes ready what is due, rolls back expired leases, forgets what was retained long enough, and does the store's
  /// own upkeep: about `budget` jobs' worth of work. Called when `next` comes, and in any case every second.
  virtual void Advance(Moment now, size_t budget, Done<Advanced> done) = 0;

 private:
  static constexpr size_t kTopicsEach = 1000;
};

}  // namespace tocsin
