// Service: the use cases. Front ends turn bytes into these calls and the answers into bytes; nothing else touches a
// store.
//
// Threads: every call names the caller's Loop (one of the shards'), is made on that loop's thread, and `done` runs
// there, exactly once: later, or before the call returns. Calls are split by slot, at most one message for each shard
// through its bounded mailbox; a full mailbox answers kOverloaded and nothing was done for that part: for its jobs
// alone where the answer has an outcome for each, for the whole call where it has not or where no part got through.
// With one shard there are no messages at all.
//
// Requests own their bytes: views in `jobs` and the like point into what `bytes` keeps alive. The last reference may be
// dropped on another shard's thread.
//
// After a store has answered kStorageFailed every call answers that: what is on disk is unknown until a restart reads
// it. Any other failure of a store passes: the call that met it answers it, reserves stay parked, the scans go on.
//
// Topics are shared with other nodes where the store is: a change made here takes effect there within a second, and the
// other way round.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "base/result.h"
#include "metrics/registry.h"
#include "model/job.h"
#include "model/topic.h"
#include "spi/shared_store.h"
#include "spi/sink.h"
#include "spi/store.h"

namespace tocsin {

using Bytes = std::shared_ptr<const void>;

/// Bounds that hold for every topic. Requests over them are refused with the field and the limit.
struct Limits {
  size_t payload_bytes = 1 << 20;
  size_t headers = 32;            // of one job
  size_t header_bytes = 8 << 10;  // of one job, names and values together
  size_t batch = kBatchMax;          // jobs, tokens or references in one call
  Millis wait_max = kWaitMax;      // of a long poll
  Millis lease_max = kLeaseMax;
  size_t waiters = 100'000;  // long polls parked at once, per shard
  size_t topics = 10'000;    // a submit to an unknown topic creates it, so their number needs a bound
};

struct SubmitRequest {
  std::string topic;
  std::vector<NewJob> jobs;
  Bytes bytes;
};

struct ReserveRequest {
  std::string topic;
  size_t max = 1;
  Millis wait{0};
  Millis lease{0};  // 0: the topic's
};

struct SettleRequest {
  std::string topic;
  std::vector<Settlement> settlements;
  Bytes bytes;
};

struct AmendRequest {
  std::string topic;
  std::vector<Amendment> amendments;
  Bytes bytes;
};

struct CountRequest {
  std::string topic;
  std::vector<CountEvent> events;
  Bytes bytes;
};

struct FindRequest {
  std::string topic;
  std::vector<JobRef> jobs;
  Bytes bytes;
};

struct ListRequest {
  std::string topic;
  State state = State::kScheduled;
  std::string cursor;  // of the page before: printable, otherwise opaque
  size_t limit = 100;
};

enum class IfUnknown : uint8_t { kCreate, kRefuse };

struct ChangeTopicRequest {
  std::string topic;
  TopicChange change;
  IfUnknown if_unknown = IfUnknown::kCreate;  // otherwise kTopicNotFound
};

struct ChangedTopic {
  Topic topic;
  bool created = false;
};

/// How late deliveries were since the start, in seconds.
struct Lateness {
  uint64_t count = 0;
  double p50 = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
};

struct TopicReport {
  TopicFigures figures;
  Lateness lateness;
};

/// Every topic, by name, summed over the shards.
struct Report {
  std::vector<TopicReport> topics;
  Lateness lateness;  // of all
};

/// What became of a job that was sent to try a topic's sink.
struct Probed {
  Delivered delivered;
  Millis took{0};
};

/// Names a parked reserve, so that a front end can take it back when its client has gone.
struct ReserveId {
  uint32_t shard = 0;
  uint64_t number = 0;
};

class Service {
 public:
  struct ShardParts {
    Loop* loop = nullptr;
    Store* store = nullptr;
    SharedStore* shared = nullptr;  // the same object, where many nodes share the store
  };

  /// The topics that the stores hold are known from the start. What is passed outlives the service. Without `sinks` a
  /// topic cannot be given one.
  Service(std::vector<ShardParts> shards, Clock& clock, metrics::Registry& metrics, Limits limits = {},
          Sinks* sinks = nullptr);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Called once, on a shard's thread, when a store has failed for good: the server exits and recovers on restart.
  void OnFailed(std::move_only_function<void(const Error&)> failed);

  /// Begins the due-scans. Called before the loops run.
  void Start();
  /// Parked reserves answer empty, new calls answer kShuttingDown, the scans stop, sinks close; `done` runs when all of
  /// it has happened and every call has its answer: nothing of the service runs after it, and only then may the service
  /// be destroyed.
  void Stop(Loop& caller, Task done);
  /// The clock was moved by hand: every shard looks at it again. `done` runs when all have.
  void ClockMoved(Loop& caller, Task done);

  /// Creates a topic or changes its settings. kConflict where it exists with another number of slots. A delivery that
  /// the change names is checked by Sinks::Check.
  void ChangeTopic(Loop& caller, ChangeTopicRequest request, Done<ChangedTopic> done);
  void DropTopic(Loop& caller, std::string topic, Done<void> done);
  /// All, or the one of that name alone where it is known. The metrics show what was read last here or by the scans.
  void Topics(Loop& caller, std::string only, Done<Report> done);

  /// Whether calls of this caller find the topic. One that a submit creates is not found before that is answered.
  bool Knows(Loop& caller, std::string_view topic);

  /// While one lives, what this caller's calls send to other shards waits; it leaves as one message for each shard when
  /// the bundle ends. In between only Submit, Settle, Amend, Count and Find are called, on topics that are known.
  class Bundle {
   public:
    Bundle(Service& service, Loop& caller);
    ~Bundle();
    Bundle(const Bundle&) = delete;
    Bundle& operator=(const Bundle&) = delete;

   private:
    Service& service_;
    Loop& caller_;
  };

  /// An unknown topic is created with the defaults. One outcome for each job, in their order.
  void Submit(Loop& caller, SubmitRequest request, Done<std::vector<Submitted>> done);
  /// Up to `max` due jobs; waits up to `wait` for the first one, in the order of arrival. An unknown topic has none
  /// yet: consumers may come before producers. kConflict where the topic is pushed to a sink.
  ReserveId Reserve(Loop& caller, ReserveRequest request, Done<JobBatch> done);
  /// The client of a reserve has gone: `done` answers empty if it has not run yet, and what was just claimed for it is
  /// released. On the thread of the reserve's caller.
  void CancelReserve(ReserveId id);
  /// What a reserve was answered with reached nobody: due again at once, and no attempt is used up.
  void Release(Loop& caller, const std::string& topic, const JobBatch& jobs);
  void Settle(Loop& caller, SettleRequest request, Done<std::vector<SettleOutcome>> done);
  void Amend(Loop& caller, AmendRequest request, Done<std::vector<Amended>> done);
  void Count(Loop& caller, CountRequest request, Done<std::vector<Counted>> done);
  void Find(Loop& caller, FindRequest request, Done<JobBatch> done);
  void List(Loop& caller, ListRequest request, Done<Page> done);
  /// Over all shards, in batches: every job that is there during all of it. How many it changed.
  void Sweep(Loop& caller, std::string topic, SweepKind kind, Done<size_t> done);

  /// Sends one job that is not stored through the topic's sink. kConflict where consumers reserve its jobs,
  /// kUnavailable while the sink cannot be opened.
  void Probe(Loop& caller, std::string topic, Done<Probed> done);

  /// Whether callers are best sent here: not after a store has failed, nor once the service stops, nor while a store
  /// cannot look for due jobs. In the last case calls are taken all the same, and may work. Thread-safe.
  Status Ready() const;
  const Limits& limits() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin
