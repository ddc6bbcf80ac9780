// Dispatcher: pushes the due jobs of one topic to its sink. It is a consumer like any other, only inside the server: it
// keeps one reserve parked on the topic's home shard, hands what that brings to the sink, and settles each job as the
// sink says: confirmed is an ack, retry a nack (or a release, where it never left), refused a dead letter.
//
// Threads: owned by the home shard and used on its thread alone; the sink is too.
//
// What it does is done in turns: what happens in between (answers of the sink, of the store, new settings, the alarm)
// is noted, and one task of the loop handles all of it, with one settle and one reserve.
//
// Invariants: no more than `in_flight` jobs are with the sink, and no more than a thousand besides are held until their
// settlement is known; nothing is claimed for the room of those that a store could not settle. Hardly more than
// kBytesMax of bytes are held; no more than `rate` jobs a second are claimed. A job is settled once, and only after the
// sink has answered for it. A sink is closed before another one is opened, and destroyed only when it has closed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "core/rate_limit.h"
#include "core/service.h"
#include "core/waiters.h"
#include "metrics/registry.h"
#include "spi/sink.h"

namespace tocsin {

class Dispatcher {
 public:
  /// Held at once by one topic; a claim that begins below it may pass it.
  static constexpr size_t kBytesMax = 64 << 20;

  /// The shard, as its dispatchers see it.
  class Home {
   public:
    virtual ~Home() = default;
    virtual Loop& loop() = 0;
    virtual const Clock& clock() const = 0;
    virtual metrics::Registry& registry() = 0;
    virtual Sinks* sinks() = 0;
    /// A task of the loop, for which the shard's end waits.
    virtual void RunSoon(Task task) = 0;
    virtual uint64_t NextReserve() = 0;
    virtual void Reserve(Waiters::Reserve reserve) = 0;
    virtual void CancelReserve(uint64_t number) = 0;
    /// On the stores that have them. `done` runs here.
    virtual void Settle(SettleRequest request, Done<std::vector<SettleOutcome>> done) = 0;
    /// Tick is to be called at `to` instead of at `from`; IoTime::max() is never.
    virtual void MoveWake(Dispatcher& dispatcher, IoTime from, IoTime to) = 0;
    /// Nothing is left of what it did: it is destroyed.
    virtual void Ended(const std::string& topic) = 0;
  };

  Dispatcher(Home& home, std::string topic) : home_(home), topic_(std::move(topic)) {}
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// The topic as it is now; nothing where it is not to be pushed any more. Takes effect with the next turn.
  void Want(std::optional<Topic> topic);
  /// The node stops: as if the topic were gone, and what cannot be settled is given up after a while.
  void Stop();
  /// Has a turn soon.
  void Schedule();
  /// The time that MoveWake was told has come, and is forgotten.
  void Tick();

  /// Sends one job that is not stored, and says what became of it; that it is not known yet where the sink waits for
  /// longer than its time-out, as one does for a broker that takes nothing. It waits for a sink that is being changed;
  /// kConflict where the topic is not pushed, kUnavailable where its sink cannot be opened.
  void Probe(Done<Probed> done);
  /// What a probe of a topic without a sink is answered.
  static Error NoSink(const std::string& topic);

 private:
  enum class JobState : uint8_t {
    kOut,       // with the sink
    kLost,      // with the sink, but its lease has ended
    kAnswered,  // by the sink
  };
  struct Batch {
    std::shared_ptr<const JobBatch> jobs;
    std::vector<JobState> states;
    size_t open = 0;   // not settled
    size_t bytes = 0;  // of all of them, until the last one is settled
    IoTime handed{};
    Time lease_end{};  // of those with the sink, on the steady timeline
  };
  struct Answered {
    uint64_t batch = 0;
    size_t index = 0;
    Delivered delivered;
  };
  struct Extension {
    uint64_t batch = 0;
    size_t index = 0;
    Time before{};  // the end of its lease
  };
  struct Probing {
    Done<Probed> done;
    IoTime from{};
    IoTime until{};
  };
  struct Figures {
    Figures(metrics::Registry& registry, const Topic& topic);
    void Count(DeliverOutcome outcome) const;

    std::shared_ptr<metrics::Gauge> in_flight;
    std::shared_ptr<metrics::Gauge> broken;
    std::shared_ptr<metrics::Counter> confirmed;
    std::shared_ptr<metrics::Counter> retry;
    std::shared_ptr<metrics::Counter> refused;
    std::shared_ptr<metrics::Counter> stale;
    std::shared_ptr<metrics::Histogram> seconds;
    std::shared_ptr<metrics::Histogram> lateness;
  };

  void Turn();
  bool Ended() const;
  IoTime NextWake(IoTime now) const;
  void WakeBy(IoTime at);

  void Open(IoTime now);
  void Close();
  void DropSink();
  bool Delivers() const { return sink_ != nullptr && !closing_; }

  size_t Room() const;
  void Claim(IoTime now);
  void OnReserved(Result<JobBatch> result);
  void Hand(JobBatch jobs);
  void OnAnswer(uint64_t batch, size_t index, Delivered delivered);

  void SettleAnswers(IoTime now);
  void SettleSome(std::vector<Answered> some);
  Settlement SettlementOf(const Answered& answered) const;
  void OnSettled(std::vector<Answered>& answers, const Result<std::vector<SettleOutcome>>& result);
  bool MayTryAgain(const Answered& answered) const;
  void Finish(const Answered& answered);

  void EndProbe(uint64_t number, Delivered delivered);
  void ExpireProbes(IoTime now);

  void Extend(IoTime now);
  void ExtendSome(std::vector<Extension> some);
  void OnExtended(const std::vector<Extension>& extensions, Time end, const Result<std::vector<SettleOutcome>>& result);

  Home& home_;
  const std::string topic_;
  std::optional<Topic> wanted_;
  bool renew_ = false;  // the sink is for a topic that was gone meanwhile
  bool scheduled_ = false;
  IoTime wake_ = IoTime::max();        // what MoveWake was told
  IoTime give_up_at_ = IoTime::max();  // after Stop
  Millis lease_ = Topic{}.lease;       // the topic's, as it was last
  std::optional<Figures> figures_;     // of the sink that was last

  // The sink.
  Delivery delivery_;  // that it was opened for
  std::unique_ptr<Sink> sink_;
  bool closing_ = false;
  bool closed_ = false;
  std::optional<Error> broken_;  // why it cannot be opened; logged
  IoTime open_at_ = IoTime::min();
  size_t out_ = 0;                        // jobs that it has not answered for
  size_t probes_ = 0;                     // the same
  std::map<uint64_t, Probing> probings_;  // those that are waited for
  uint64_t last_probe_ = 0;
  std::vector<Done<Probed>> early_probes_;  // asked for while a sink was being closed or opened

  // Claims.
  uint64_t reserve_ = 0;  // the one that is out
  IoTime claim_at_ = IoTime::min();
  size_t in_flight_max_ = 0;
  RateLimit rate_;

  // What is held, and what is to be told to the store.
  std::map<uint64_t, Batch> batches_;
  uint64_t last_batch_ = 0;
  size_t held_ = 0;  // jobs
  size_t held_bytes_ = 0;
  std::vector<Answered> answers_;
  std::vector<Answered> failed_;  // the store could not take them: tried again at retry_at_
  bool store_away_ = false;       // said its last answer
  IoTime retry_at_{};
  IoTime extend_at_{};
  size_t settling_ = 0;  // calls of the store
};

}  // namespace tocsin
