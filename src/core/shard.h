// Shard: one of the node's threads as the service sees it. It has a store, the alarm that calls Store::Advance in time,
// a scan that runs at least every second in case a wake-up was lost, its copy of the topics, and, for the topics whose
// home it is, their reserves and the dispatchers of those that are pushed. Only the store knows the state of jobs.
//
// Threads: Send and TrySend are thread-safe; everything else belongs to the shard's own thread.
//
// Invariants: after any change of the store an Advance follows before the loop rests. At most one Advance is under way;
// if it takes long, the store is told to finish it. A shard is quiet when it has stopped, its callers have their
// answers and nothing that it started is under way; then it starts nothing any more.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "core/dispatcher.h"
#include "core/figures.h"
#include "core/node.h"
#include "core/requests.h"
#include "core/topic_table.h"
#include "core/waiters.h"
#include "metrics/registry.h"
#include "spi/shared_store.h"

namespace tocsin {

class Shard final : private Waiters::Claims {
 public:
  Shard(Node& node, uint32_t index, Loop& loop, Store& store, SharedStore* shared);
  ~Shard() override = default;

  /// Runs `work` on the shard's thread.
  void Send(Task work) { loop_.Post(std::move(work)); }
  /// False, and nothing happens, when the mailbox is full.
  [[nodiscard]] bool TrySend(Task work) { return loop_.TryPost(std::move(work)); }

  /// On this shard's thread: runs `work` on `there`, or `refuse` here if its mailbox is full. Within a bundle both wait
  /// for its end.
  void Deliver(Shard& there, Task work, Task refuse);
  void BeginBundle() { bundling_ = true; }
  void EndBundle();

  uint32_t index() const { return index_; }
  Loop& loop() { return loop_; }
  Store& store() { return store_; }
  /// Null if only this node uses the store.
  SharedStore* shared_store() { return shared_; }
  TopicTable& topics() { return topics_; }
  Moment Now() const { return node_.clock.Now(); }

  /// Begins the scans. `missing` are topics that this shard's store lacks or has in an older version. The shard puts
  /// them, and tries again at every scan if the store cannot take them.
  void Begin(std::vector<Topic> missing);
  /// Answers the reserves and stops the scans; `quiet` runs when the shard is quiet.
  void Stop(Task quiet);
  /// After that, leases may still be released here: `quiet` runs when the store has taken them.
  void AwaitQuiet(Task quiet);
  /// `done` runs when the store has made ready all that is due.
  void Look(Task done);

  /// Runs `step` soon, and only one such step in each turn of the loop. Work that takes long is a chain of short steps;
  /// however much of it there is, other calls wait for one step.
  void InTurn(Task step);
  /// The same for a walk through the jobs of a topic. These steps have a queue of their own, and take turns with the
  /// others: however many walks there are, a large submit waits for one step of theirs each time.
  void InWalkTurn(Task step);

  /// Runs `task` at `at`, or when the shard stops if that is earlier.
  void RunAt(IoTime at, Task task);

  /// The store was changed: an Advance follows after what the loop has to do now.
  void Changed();
  /// Sweeps all jobs of a topic on this shard, in batches, between which other work gets its turn. How many it changed.
  void Sweep(std::string topic, SweepKind kind, Done<size_t> done);
  /// Tells the node if the result says that the store has failed for good.
  template <class T>
  void Note(const Result<T>& result) {
    if (!result && result.error().code == Code::kStorageFailed) node_.NoteFailure(result.error());
  }

  void KnowTopic(const Topic& topic);
  void ForgetTopic(const std::string& topic);

  /// kConflict if the topic is pushed and the reserve is a consumer's.
  void Reserve(Waiters::Reserve reserve);
  void CancelReserve(uint64_t number);
  /// Undoes a delivery by `from`, whose client has gone.
  void ReleaseAt(Shard& from, Leases leases);

  /// A number for a reserve of one of this shard's callers, with the shard's index inside.
  uint64_t NextReserve() { return uint64_t{index_} << 48 | ++reserves_; }
  static uint32_t CallerOf(uint64_t reserve) { return static_cast<uint32_t>(reserve >> 48); }
  /// Reserves of this shard's callers that were cancelled while their answers may be on their way.
  std::unordered_set<uint64_t>& cancelled() { return cancelled_; }

  /// Tries the topic's sink. On the topic's home shard.
  void Probe(const std::string& topic, Done<Probed> done);

  /// Completes it, if its topic is pushed. On the topic's home shard.
  void Describe(DeliveryReport& report) const;

  // For the dispatchers.
  /// A task of the loop. The shard is not quiet before it has run.
  void RunSoon(Task task);
  /// On the stores that have the jobs. `done` runs here.
  void Settle(SettleRequest request, Done<std::vector<SettleOutcome>> done);
  /// Dispatcher::Tick is to be called at `to` instead of at `from`; IoTime::max() is never.
  void MoveWake(Dispatcher& dispatcher, IoTime from, IoTime to);
  /// Nothing that the dispatcher started is under way any more: destroys it.
  void Ended(const std::string& topic);

  /// Each call that the service takes from this shard's thread, until it is answered there.
  void OpenCall() { ++open_; }
  void CloseCall();

 private:
  struct Sweeping;
  struct Claiming;

  void Claim(const std::string& topic, uint32_t offset, uint64_t waiter, JobMax max, Millis lease) override;
  void Release(const std::string& topic, uint32_t offset, JobBatch jobs) override;
  void SetHungry(const std::string& topic, uint32_t spread, bool hungry) override;
  void GoOnSoon() override;
  /// Calls Waiters::TellSated after a while, if it has something to tell.
  void AwaitSated();
  /// A large claim takes several turns, so that others have theirs in between.
  void ServeClaim(Shard& home, std::string topic, uint64_t waiter, JobMax max, Millis lease);
  void ContinueClaim(std::shared_ptr<Claiming> claiming);
  void NoteClaimed(std::string_view topic, const Result<JobBatch>& result);
  void AnswerClaim(Shard& home, uint64_t waiter, Result<JobBatch> result);
  void Claimed(uint64_t waiter, Result<JobBatch> result);
  /// Looks again after a while, if reserves found no room for their jobs.
  void AwaitRoom();
  void RecordLateness(std::string_view topic, const JobBatch& jobs);

  void Push(const std::string& topic, std::optional<Topic> wanted);
  void WakeDispatchers(IoTime now);
  void RunLater(IoTime now);

  void OnAlarm();
  void Advance();
  void OnAdvanced(Result<Advanced> result);
  void NoteOutage(const Result<Advanced>& result);
  void SweepNext(std::shared_ptr<Sweeping> sweeping);
  void PutMissing();
  void Scan();
  void ScanSome();
  void AddStep(std::deque<Task>& steps, Task step);
  void PostStep();
  void Announce(const std::vector<std::string>& topics);
  void Announced(Shard& from, std::span<const std::string> topics);
  void Rearm();
  void CheckQuiet();

  Node& node_;
  const uint32_t index_;
  Loop& loop_;
  Store& store_;
  SharedStore* const shared_;
  TopicTable topics_;
  Waiters waiters_;
  const std::shared_ptr<metrics::Histogram> stalls_;

  bool changed_ = false;        // since the last Advance began
  bool tick_posted_ = false;    // a task that will Advance is in the loop
  bool advancing_ = false;      // an Advance is under way
  bool failing_ = false;        // the last Advance failed, wholly or in part, and that was logged
  std::vector<Topic> missing_;  // topics that the store lacks, or has in an older version
  IoTime next_due_ = IoTime::max();
  Moment utc_moved_;  // when the wall clock was last seen to move
  IoTime next_scan_ = IoTime::min();
  IoTime sated_at_ = IoTime::max();  // when Waiters::TellSated is to be called
  IoTime room_at_ = IoTime::max();   // when Waiters::TryRoom is to be called
  IoTime alarm_at_ = IoTime::max();
  IoTime finish_at_ = IoTime::max();  // while an Advance is under way
  bool begun_ = false;
  TextMap<std::unique_ptr<Dispatcher>> dispatchers_;  // by topic
  std::set<std::pair<IoTime, Dispatcher*>> wakes_;    // when they have something to do
  std::multimap<IoTime, Task> later_;                 // of RunAt
  std::deque<Task> steps_;                            // of InTurn
  std::deque<Task> walk_steps_;                       // of InWalkTurn; one of all these is in the loop if there are any
  bool walked_ = false;                               // the last step was of a walk
  bool scanning_ = false;                             // a scan of the topics is under way:
  std::string scan_cursor_;                           // where it goes on
  FiguresParts scanned_;                              // and what it has found
  FiguresParts outdated_;                             // of an earlier scan; the present one frees it
  std::vector<Task> lookers_;                         // wait for an Advance that leaves nothing due

  struct Parcel {
    Task work;
    Task refuse;
  };
  bool bundling_ = false;
  std::vector<std::vector<Parcel>> parcels_;  // of the bundle, by shard

  uint64_t reserves_ = 0;
  std::unordered_set<uint64_t> cancelled_;

  size_t open_ = 0;     // calls
  size_t started_ = 0;  // claims, releases, an Advance
  bool stopped_ = false;
  Task quiet_;
};

}  // namespace tocsin
