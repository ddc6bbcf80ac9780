// Waiters: the reserves of the topics whose home is one shard. Owned by that shard and touched by its thread alone.
//
// `spread` shards serve a topic; each has an offset, counted from the home shard. A shard is marked ready for a topic
// by its announcement, and when the topic has just appeared or changed. A claim that came back short clears the mark,
// unless an announcement came after that claim was sent: it may be about jobs that the claim did not see. Reserves park
// in the order of arrival; a ready shard is asked on behalf of the first one. A reserve has at most one claim out; it
// answers with the first jobs that it gets, however few.
//
// A shard gets few claims at first and twice as many after each one that came back full, so that one job does not cause
// a claim for every parked reserve.
//
// If a claim fails because the store cannot be reached (kUnavailable), its reserve stays parked, if it waits at all.
// AskAgain asks the shard again.
//
// A claim takes no more than its reserve has room for (JobRoom). If there is no room for the first job, nothing is
// claimed. The reserve goes behind the others, because their room may not be the same, and the shard is set aside: it
// has jobs, but asking at once would say the same. TryRoom asks it again, for a few reserves of a few topics at a time.
//
// A reserve without a wait never parks. It asks every shard once, ready ones first, so that it misses nothing that was
// submitted before it. If it gets nothing because there was no room, it fails with kOverloaded.
//
// If many nodes share the store, the shards of a topic are told when reserves begin to wait for it. That they no longer
// do is told a moment later (TellSated), because most consumers come back at once; or before a reserve without a wait
// asks, so that the stores look for themselves.
//
// The server's own reserves (dispatchers) wait without an end and do not count against the limit of parked reserves.
//
// If the deadline of a reserve comes while its claim is under way, the reserve waits for that claim, half a second at
// most.
//
// Thousands of reserves may wake, or reach their deadlines, at the same time. One turn of the loop serves a few of them
// and answers a few (TurnShare); Claims::GoOnSoon has the rest done in later turns. A reserve whose deadline has come
// gets a job if its topic still has jobs for those that wait.
//
// Invariants: each reserve's `done` runs once. Jobs that come back for a reserve that has been answered are released.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/turn_share.h"
#include "model/job.h"
#include "spi/store.h"

namespace tocsin {

class Waiters {
 public:
  static constexpr uint32_t kShardsMax = 64;

  /// How claims are carried out. Both may call back at once.
  class Claims {
   public:
    virtual ~Claims() = default;
    /// Ends in Claimed(waiter, ...).
    virtual void Claim(const std::string& topic, uint32_t offset, uint64_t waiter, JobMax max, Millis lease) = 0;
    virtual void Release(const std::string& topic, uint32_t offset, JobBatch jobs) = 0;
    /// Whether reserves wait for the topic; for the shards with an offset below `spread`.
    virtual void SetHungry(const std::string& topic, uint32_t spread, bool hungry) = 0;
    /// Has GoOn called in a later turn of the loop.
    virtual void GoOnSoon() = 0;
  };

  struct Reserve {
    uint64_t number = 0;  // unique
    std::string topic;
    size_t max = 1;
    Millis lease{0};
    std::string holder = {};  // of the leases
    bool waits = false;
    IoTime deadline{};  // when it waits
    bool own = false;   // the server's
    std::shared_ptr<JobRoom> room;
    Done<JobBatch> done;
  };

  /// The table of topics has room for `topics` from the start: to grow later would hold up the shard. `tells`: many
  /// nodes share the store, and SetHungry is called.
  Waiters(Claims& claims, const Clock& clock, size_t waiters_max, size_t topics, bool tells)
      : claims_(claims), waiters_max_(waiters_max), tells_(tells), serving_(clock), answering_(clock) {
    queues_.reserve(topics);
  }

  /// The topic has appeared, or its settings have changed: all its shards are worth asking. `pushed`: it is not for
  /// consumers any more. Those that wait are answered with nothing; the server's own stay.
  void Open(std::string_view topic, uint32_t spread, bool pushed);
  /// The topic was dropped. Its reserves stay parked: it may appear again.
  void Forget(std::string_view topic);
  /// A shard says that the topic has jobs to claim there.
  void Announce(std::string_view topic, uint32_t offset);
  /// Shards whose store could not be reached are worth asking again.
  void AskAgain();
  /// Time has passed: there may be room for jobs that had none.
  void TryRoom();
  /// Whether TryRoom is to be called after a while.
  bool WantsRoom() const { return !cramped_.empty(); }

  void Add(Reserve reserve);
  void Cancel(uint64_t number);
  void Claimed(uint64_t number, Result<JobBatch> result);

  /// Whether reserves have stopped to wait for a topic whose shards were not told of it: TellSated soon.
  bool HasSated() const { return !sated_.empty(); }
  void TellSated();

  /// Answers those whose deadline has come.
  void Expire(IoTime now);
  /// When to call Expire; IoTime::max() if none is parked, or GoOn will do it.
  IoTime NextDeadline() const;
  /// Serves and answers some of those that had to wait for a later turn.
  void GoOn(IoTime now);

  /// Answers all with nothing, now and from now on.
  void Close();
  /// Whether no reserve is parked and no claim is out.
  bool Idle() const { return waiters_.empty(); }

 private:
  /// A topic on one of its shards.
  struct Source {
    uint32_t out = 0;        // claims under way
    uint32_t window = 1;     // the most of them
    uint64_t announced = 0;  // how often
  };
  struct Waiter;
  struct Queue {
    std::string topic;
    std::vector<Source> sources;         // by offset; none while the topic is unknown
    uint64_t ready = 0;                  // a bit for each source
    uint64_t away = 0;                   // those whose claim failed, until they are asked again
    uint64_t cramped = 0;                // those with jobs that there was no room for, the same
    size_t tries = 0;                    // claims that may find no room before their source is set aside
    uint32_t next = 0;                   // the source to look at first
    std::map<uint64_t, Waiter*> parked;  // by arrival
    size_t waiters = 0;                  // parked, or with a claim out
    size_t waiting = 0;                  // of them, those that wait
    uint32_t told = 0;                   // how many shards know that some do
    int busy = 0;                        // frames on the stack that use the queue
    bool pumping = false;
    bool pushed = false;     // consumers are answered with nothing
    bool postponed = false;  // in postponed_
  };
  struct Waiter {
    Reserve reserve;
    Queue* queue = nullptr;
    uint64_t arrival = 0;
    bool answered = false;
    bool has_deadline = false;
    bool claiming = false;
    bool late = false;       // its deadline has passed: it waits for its claim alone
    bool cramped = false;    // a claim found no room
    uint32_t offset = 0;     // of the claim that is out, or was last
    uint64_t announced = 0;  // by that source when the claim was sent
    uint64_t unasked = 0;    // sources that a reserve without a wait has still to ask
  };
  class Use;

  void Pump(Queue& queue);
  /// Sends claims for those that are parked. True if some have to wait because the share is spent.
  bool Serve(Queue& queue, TurnShare& share);
  void GoOnLater();
  int PickSource(const Queue& queue, uint64_t among, bool windowed) const;
  void Send(Waiter& waiter, uint32_t offset);
  void Ask(Waiter& waiter);
  void Settle(Queue& queue, const Waiter& waiter, const Result<JobBatch>& result);
  void SetAside(Queue& queue, uint32_t offset);
  void Answer(Waiter& waiter, Result<JobBatch> result);
  void AnswerEmpty(Waiter& waiter);
  void Remove(Waiter& waiter);
  void TellHungry(Queue& queue);
  void TellSated(Queue& queue);

  Claims& claims_;
  const size_t waiters_max_;
  const bool tells_;
  TextMap<Queue> queues_;
  std::set<std::string, std::less<>> away_;          // topics with a source that is
  std::set<std::string, std::less<>> cramped_;       // the same
  std::string room_turn_;                            // the last of them that was asked again
  std::set<std::string, std::less<>> sated_;         // topics that nobody waits for any more, untold
  std::unordered_map<uint64_t, Waiter> waiters_;     // by number
  std::set<std::pair<IoTime, uint64_t>> deadlines_;  // with their numbers
  TurnShare serving_;                                // of Pump
  TurnShare answering_;                              // of Expire: however many are served, deadlines are kept
  std::deque<std::string> postponed_;                // topics that GoOn has to pump
  bool goes_on_ = false;                             // GoOn will be called
  uint64_t arrivals_ = 0;
  size_t own_ = 0;  // of waiters_
  bool closed_ = false;
};

}  // namespace tocsin
