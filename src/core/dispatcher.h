// Dispatcher: pushes the due jobs of one topic to its sink. It is a consumer inside the server: it keeps one reserve
// parked on the topic's home shard, hands the jobs to the sink, and settles each job as the sink says. Confirmed is an
// ack, retry is a nack (or a release, if the job never left), refused makes a dead letter.
//
// A receiver that cannot be reached costs no attempts for `outage_ms`. What did not get through is released with a
// short delay, so that it takes no room from what may (a partition of Kafka may be away alone). While nothing gets
// through, jobs stay in the store, and a few of them are tried from time to time.
//
// Threads: owned by the home shard and used on its thread alone, and so is the sink.
//
// It works in turns. What happens in between (answers of the sink and of the store, new settings, the alarm) is noted,
// and one task of the loop handles all of it, with one settle and one reserve.
//
// Invariants: at most `in_flight` jobs are with the sink, and at most a thousand more are held until their settlement
// is known; jobs that a store could not settle keep their room until their lease ends. Hardly more than kBytesMax bytes
// are held, and all topics of a node hold no more together than PushMemory has room for: a claim waits for that. At
// most `rate` jobs a second are claimed. A job is settled once, and only after the sink has answered for it. While the
// store is away, an answer outlasts its lease: the store alone knows whether the lease still holds. A sink is closed
// before another one is opened, and destroyed only when it has closed.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/episode.h"
#include "core/figures.h"
#include "core/rate_limit.h"
#include "core/requests.h"
#include "metrics/registry.h"
#include "spi/push_memory.h"
#include "spi/sink.h"

namespace tocsin {

struct Node;
class Shard;

class Dispatcher {
 public:
  /// Held at once by one topic; a claim that begins below it may pass it.
  static constexpr size_t kBytesMax = 64 << 20;

  Dispatcher(Node& node, Shard& home, std::string topic) : node_(node), home_(home), topic_(std::move(topic)) {}
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// The topic as it is now; nothing if it is not to be pushed any more. Takes effect with the next turn.
  void Want(std::optional<Topic> topic);
  /// The node stops. Like Want(nothing), and what cannot be settled is given up after a while.
  void Stop();
  /// Takes a turn soon.
  void Schedule();
  /// The time of the last MoveWake has come.
  void Tick();

  /// Sends one job that is not stored and answers its outcome: kRetry if the sink has no answer within its timeout,
  /// which happens with a broker that takes nothing. Waits for a sink that is being changed. kConflict if the topic is
  /// not pushed, kUnavailable if its sink cannot be opened.
  void Probe(Done<Probed> done);
  /// Completes what is known of the topic's delivery.
  void Describe(DeliveryReport& report) const;
  PushTrouble trouble() const {
    return {.failures = failures_, .failed_at = failed_at_, .broken_at = broken_ && wanted_ ? broken_at_ : kNever};
  }
  /// The answer to a probe of a topic without a sink.
  static Error NoSink(const std::string& topic);

 private:
  enum class JobState : uint8_t {
    kOut,       // with the sink
    kLost,      // with the sink, but its lease has ended
    kAnswered,  // by the sink
  };
  struct Batch {
    std::shared_ptr<const JobBatch> jobs;  // with their room
    std::vector<JobState> states;
    size_t open = 0;   // jobs that are not settled
    size_t bytes = 0;  // of all jobs, until the last one is settled
    IoTime handed{};   // to the sink
    Time lease_end{};  // of the jobs with the sink, on the steady timeline
  };
  struct Answered {
    uint64_t batch = 0;  // 0: the lease seems to have ended, and only this answer is kept
    Token token;
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

    std::shared_ptr<metrics::Gauge> in_flight;
    std::shared_ptr<metrics::Gauge> broken;
    std::shared_ptr<metrics::Gauge> failures;
    std::shared_ptr<metrics::Gauge> unreachable;
    std::array<std::shared_ptr<metrics::Counter>, 3> outcomes;  // by DeliverOutcome
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
  void Hand(JobBatch jobs, std::shared_ptr<JobRoom> room);
  void OnAnswer(uint64_t batch, size_t index, Delivered delivered);
  void OnUnsent(uint64_t batch, Delivered& delivered, IoTime now);
  /// Something left this server, and was answered.
  void OnHeard(IoTime now);
  void LogFailing(const Delivered& delivered, IoTime now);
  void LogWell(IoTime now);

  void SettleAnswers(IoTime now);
  void SettleSome(std::vector<Answered> some);
  Settlement SettlementOf(const Answered& answered) const;
  void OnSettled(std::vector<Answered>& answers, const Result<std::vector<SettleOutcome>>& result);
  bool MayTryAgain(const Answered& answered) const;
  void TryAgain(Answered answered);
  void Finish(const Answered& answered);

  void EndProbe(uint64_t number, Delivered delivered);
  void ExpireProbes(IoTime now);

  void Extend(IoTime now);
  void ExtendSome(std::vector<Extension> some);
  void OnExtended(const std::vector<Extension>& extensions, Time end, const Result<std::vector<SettleOutcome>>& result);

  Node& node_;
  Shard& home_;
  const std::string topic_;
  std::optional<Topic> wanted_;
  bool renew_ = false;  // the topic was dropped and made again: its sink is an old one
  bool scheduled_ = false;
  IoTime wake_ = IoTime::max();        // of the last MoveWake
  IoTime give_up_at_ = IoTime::max();  // after Stop
  Millis lease_ = Topic{}.lease;       // of the topic, as last wanted
  std::optional<Figures> figures_;     // of the current or last sink

  // The sink.
  Delivery delivery_;  // that it was opened for
  std::unique_ptr<Sink> sink_;
  bool closing_ = false;
  bool closed_ = false;
  std::optional<Error> broken_;  // why it cannot be opened; logged
  Time broken_at_{};             // since when, on the steady timeline
  IoTime open_at_ = IoTime::min();
  size_t out_ = 0;           // jobs that it has not answered for
  uint64_t failures_ = 0;    // answers since the last that was a confirmation
  Time failed_at_{};         // the last of them, on the steady timeline
  uint64_t rejections_ = 0;  // the same without those of jobs that it could not send
  Episode failing_{"receiver_failing"};
  std::string last_error_;  // the last answer that was no confirmation
  Time last_error_at_{};
  size_t probes_ = 0;                     // like out_, for probes
  std::map<uint64_t, Probing> probings_;  // probes whose caller waits
  uint64_t last_probe_ = 0;
  std::vector<Done<Probed>> early_probes_;  // asked for while a sink was being closed or opened

  // Claims.
  uint64_t reserve_ = 0;  // the one that is parked
  const std::shared_ptr<PushShare> share_ = std::make_shared<PushShare>();
  std::shared_ptr<JobRoom> room_;  // of the reserve
  IoTime claim_at_ = IoTime::min();
  size_t in_flight_max_ = 0;
  RateLimit rate_;

  // A receiver that cannot be reached: jobs come back that never left this server.
  Millis outage_max_{0};
  IoTime silent_since_ = IoTime::max();  // the first that came back since something was heard
  IoTime unsent_since_ = IoTime::max();  // of the present outage, in which some may get through
  IoTime unsent_at_{};                   // the last one
  IoTime heard_at_{};
  uint64_t heard_after_ = 0;          // the last batch that had been handed over when something was heard
  bool away_ = false;                 // nothing gets through
  IoTime warned_of_ = IoTime::min();  // the outage that was logged last
  Millis pause_{0};                   // before the next try with a few jobs; 0: all are tried
  uint64_t paused_after_ = 0;         // the last batch that had been handed over before the pause

  // Jobs that are held, and answers to pass on to the store.
  std::map<uint64_t, Batch> batches_;
  uint64_t last_batch_ = 0;
  size_t held_ = 0;  // jobs
  size_t held_bytes_ = 0;
  std::vector<Answered> answers_;
  std::vector<Answered> failed_;  // the store could not take them: tried again at retry_at_
  size_t late_ = 0;               // answers whose lease seems to have ended
  bool store_away_ = false;       // the store could not take some of the last settlements
  IoTime retry_at_{};
  IoTime extend_at_{};
  size_t settling_ = 0;  // calls of the store under way
};

}  // namespace tocsin
