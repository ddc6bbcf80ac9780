// Service: the use cases. Front ends turn bytes into these calls and the answers into bytes; nothing else touches a
// store.
//
// Threads: every call names the caller's Loop (one of the shards'), is made on that loop's thread, and `done` runs
// there, exactly once: later, or before the call returns. Calls are split by slot, at most one message for each shard
// through its bounded mailbox. A full mailbox answers kOverloaded, and nothing was done for that part: for its jobs
// if the answer has an outcome for each; otherwise, or if no part got through, for the whole call. With one shard there
// are no messages at all.
//
// After a store has answered kStorageFailed every call answers that: what is on disk is unknown until a restart reads
// it. Any other failure of a store passes: the call that met it answers it, reserves stay parked, the scans go on.
//
// If several nodes share the store they share its topics: a change made here takes effect there within a second, and
// the other way round.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "core/requests.h"
#include "metrics/registry.h"
#include "spi/push_memory.h"
#include "spi/shared_store.h"

namespace tocsin {

template <class T>
struct Call;
struct Node;
class FiguresBoard;
class LoadReporter;
class Shard;
class TopicRegistry;
class Operations;
class TopicReporter;
class Monitor;
class EventHub;
class Worker;

class Service {
 public:
  struct ShardParts {
    Loop* loop = nullptr;
    Store* store = nullptr;
    SharedStore* shared = nullptr;  // the same object, if many nodes share the store
  };

  /// Knows the topics that the stores hold from the start. What is passed outlives the service. Without `sinks` a topic
  /// cannot be given one; without `push_memory` what is pushed has no bound over all topics.
  Service(const std::vector<ShardParts>& parts, Clock& clock, metrics::Registry& metrics, Limits limits = {},
          SinkFactory* sinks = nullptr, PushMemory* push_memory = nullptr);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// `failed` is called once, on a shard's thread, when a store has failed for good: the server exits and recovers on
  /// restart.
  void OnFailed(std::move_only_function<void(const Error&)> failed);

  /// Before Start: keeps a history, and tells those who listen of figures. `worker` does the work; the loops and the
  /// worker outlive the service.
  void Watch(Worker& worker);
  /// For whoever listens, and whoever has something to tell.
  EventHub& events();
  /// Begins the due-scans. Called before the loops run.
  void Start();
  /// Answers parked reserves with nothing and new calls with kShuttingDown, stops the scans, closes the sinks. `done`
  /// runs when every call has its answer. Nothing of the service runs after it, unless leases are released, and only
  /// then may the service be destroyed.
  void Stop(Loop& caller, Task done);
  /// After Stop, when nobody releases leases any more: `done` runs when those that were released are back in the store.
  void AwaitReleases(Loop& caller, Task done);
  /// The clock was moved by hand: every shard looks at it again. `done` runs when all have.
  void ClockMoved(Loop& caller, Task done);

  /// Creates a topic or changes its settings. kConflict if it exists with another number of slots. SinkFactory::Check
  /// checks a delivery that the change names.
  void ChangeTopic(Loop& caller, ChangeTopicRequest request, Done<ChangedTopic> done);
  void DropTopic(Loop& caller, std::string topic, Done<void> done);
  /// kTopicNotFound if it is unknown.
  void ShowTopic(Loop& caller, std::string topic, Done<TopicReport> done);
  /// How many names of topics begin with `prefix`. Its cost hardly depends on how many there are.
  size_t CountTopics(Loop& caller, std::string_view prefix) const;
  /// Looks at the next few topics after `after` whose names begin with `prefix`, and answers those that have leased
  /// jobs. If nodes share the store, all of them: this node learns only later what the others lease.
  void NextLeased(Loop& caller, std::string prefix, std::string after, Done<NextTopics> done);
  /// Those whose names begin with `prefix`. An error of `take` is the answer.
  void Topics(Loop& caller, std::string prefix, TakeTopic take, Done<void> done);
  void Total(Loop& caller, Done<Totals> done);
  /// A part of the topics, in an order. By a figure, the order is that of the last scans.
  void TopicsPage(Loop& caller, TopicsPageRequest request, Done<TopicsPageReport> done);
  /// Of the topic, or of the node if it is empty. Nothing without Watch.
  void History(Loop& caller, const std::string& topic, Done<HistoryReport> done);
  void ShowLateness(Loop& caller, const std::string& topic, Done<metrics::Histogram::Snapshot> done);
  /// The topics that are pushed to a sink, by name.
  void Deliveries(Loop& caller, DeliveriesRequest request, Done<DeliveriesPage> done);
  /// How many jobs become due in each step of a time. kInvalidArgument for more than kLoadStepsMax steps.
  void Load(Loop& caller, LoadRequest request, Done<LoadReport> done);
  /// Runs `step` on the caller's loop when it is its turn: for answers that take long to write (Shard::InTurn).
  void InTurn(Loop& caller, Task step);

  /// Whether calls of this caller find the topic. If a submit creates it, they do not before that is answered.
  bool Knows(Loop& caller, std::string_view topic) const;

  /// While one lives, what this caller's calls send to other shards waits; it leaves as one message for each shard when
  /// the bundle ends. In between only Submit, Settle, Amend, Count and Find are called, on topics that are known.
  class Bundle {
   public:
    Bundle(Service& service, Loop& caller);
    ~Bundle();
    Bundle(const Bundle&) = delete;
    Bundle& operator=(const Bundle&) = delete;

   private:
    Shard& shard_;
  };

  /// Creates an unknown topic with the defaults. One outcome for each job, in their order.
  void Submit(Loop& caller, SubmitRequest request, Done<std::vector<Submitted>> done);
  /// Up to `max` due jobs; waits up to `wait` for the first one, in the order of arrival. An unknown topic has none
  /// yet: consumers may come before producers. Waits in the same way while there is no room for the first job;
  /// kOverloaded if it does not wait. kConflict if the topic is pushed to a sink.
  ReserveId Reserve(Loop& caller, ReserveRequest request, Done<JobBatch> done);
  /// The client of a reserve has gone: `done` answers empty if it has not run yet, and what was just claimed for it is
  /// released. On the thread of the reserve's caller.
  void CancelReserve(ReserveId id);
  /// The answer of a reserve reached nobody: its jobs are due again at once, and no attempt is used up.
  void Release(Loop& caller, const Leases& leases);
  void Settle(Loop& caller, SettleRequest request, Done<std::vector<SettleOutcome>> done);
  void Amend(Loop& caller, AmendRequest request, Done<std::vector<Amended>> done);
  void Count(Loop& caller, CountRequest request, Done<std::vector<Counted>> done);
  void Find(Loop& caller, FindRequest request, Done<JobBatch> done);
  /// A page may hold few jobs or none though more follow: its cursor tells.
  void List(Loop& caller, ListRequest request, Done<Page> done);
  /// Counts all jobs that match, and looks at all jobs of the topic for that.
  void Tally(Loop& caller, TallyRequest request, Done<TallyReport> done);
  /// Acts on all jobs that match (operations.h). `ended` runs when that is over, on shard 0's thread.
  using OperationEnded = std::move_only_function<void(const OperationReport&)>;
  void Operate(Loop& caller, OperateRequest request, Done<OperationReport> done, OperationEnded ended = {});
  void ShowOperation(Loop& caller, std::string topic, std::string id, Done<OperationReport> done);
  void ListOperations(Loop& caller, std::string topic, Done<std::vector<OperationReport>> done);
  void StopOperation(Loop& caller, std::string topic, std::string id, Done<void> done);
  /// Over all shards, in batches: every job that is there during all of it. Answers how many jobs it changed.
  void Sweep(Loop& caller, std::string topic, SweepKind kind, Done<size_t> done);

  /// Sends one job that is not stored through the topic's sink. kConflict if consumers reserve its jobs, kUnavailable
  /// while the sink cannot be opened.
  void Probe(Loop& caller, std::string topic, Done<Probed> done);

  /// Whether callers are best sent here: not after a store has failed, nor once the service stops, nor while no store
  /// can look for due jobs. In the last case calls are still taken, and may work. Thread-safe.
  Status Ready() const;
  const Limits& limits() const;
  /// Why a shard's store cannot look for due jobs at the moment; nothing if all can. Thread-safe.
  std::optional<Error> Outage() const;
  /// What the shards' last scans have found. Thread-safe.
  const FiguresBoard& figures() const;

 private:
  struct Listing;
  struct Sorting;
  struct Naming;
  struct NameWalk;
  struct Pushing;

  /// At the start: a topic that at least one store has.
  void Know(const std::vector<ShardParts>& parts, const Topic& newest);
  Shard& ShardOf(const Loop& loop) const;
  /// Opens a call, or answers it if the service takes no more.
  template <class T>
  std::optional<Call<T>> Admit(Loop& caller, Done<T>& done);
  /// Settle, Amend, Count and Find.
  template <class Use>
  void OnKnownTopic(Loop& caller, typename Use::Request request, Status valid, Done<typename Use::Answer> done);
  void ListNext(std::shared_ptr<Listing> listing);
  /// Hands over all jobs that match, page by page, on the caller's thread, until `take` refuses.
  void ForEachPage(Loop& caller, ListRequest request, std::function<Status(const Page&)> take, Done<void> done);
  void SortNext(std::shared_ptr<Sorting> sorting);
  /// Looks up the jobs that the selector names by their ids, one after the other.
  void NameNext(std::shared_ptr<Naming> naming);
  void WalkNames(std::shared_ptr<NameWalk> walk);
  void PageOfNames(Shard& here, TopicsPageRequest request, std::function<void(size_t, std::vector<std::string>)> done);
  void NextPushing(std::shared_ptr<Pushing> pushing);
  void DescribePushing(std::shared_ptr<Pushing> pushing);
  template <class T>
  void AskOperations(Loop& caller, std::string topic, std::function<Result<T>(Operations&)> ask, Done<T> done);
  /// On shard 0's thread: takes over what other nodes did to topics, and what could not be taken over before.
  void TakeTopicChanges();

  const std::unique_ptr<Node> node_;
  const std::unique_ptr<TopicRegistry> registry_;  // on shard 0
  const std::unique_ptr<TopicReporter> reporter_;
  std::unique_ptr<Operations> operations_;  // on shard 0
  const std::unique_ptr<LoadReporter> loads_;
  std::unique_ptr<Monitor> monitor_;         // null without Watch
  std::vector<std::vector<Topic>> missing_;  // what each store lacks at the start
  const uint32_t start_;                     // a random number, in the cursors of listings
};

}  // namespace tocsin
