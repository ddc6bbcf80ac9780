// Sink: delivers the jobs of one topic to one receiver. SinkFactory: makes the sinks of one kind, such as "webhook".
// Each folder of src/sinks implements both. One Sink object serves one topic on one node; if the topic's delivery
// changes, the node closes it and makes another one. Every sink passes the same contract suite
// (spi/contract/sink_contract.h) with a real receiver.
//
// Threads: every method of a Sink is called on the thread of the Loop that the sink was made with, and answers come on
// it too.
//
// What every sink promises:
//  - Each job of each batch is answered exactly once, also if the receiver hangs, dies or is closed.
//  - kConfirmed is said only after the receiver has said that it has the job.
//  - If the receiver keeps order, jobs reach it in the order in which Deliver was called, and in their order within a
//    batch, unless one of them has to be tried again.
//  - Memory is bounded by what Deliver was given and has not been answered: the caller bounds that.
//  - Reasons are for people: they say what the receiver answered, and never hold a secret or a payload.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/result.h"
#include "model/job.h"
#include "model/topic.h"

namespace tocsin {

enum class DeliverOutcome : uint8_t {
  kConfirmed,  // the receiver has it
  kRetry,      // not confirmed: the receiver may or may not have it; try again later
  kRefused,    // the receiver does not want it, now or later: a dead letter
};

/// What they are called on every wire, in the order of the enum.
constexpr std::string_view kDeliverOutcomeNames[] = {"confirmed", "retry", "refused"};

struct Delivered {
  DeliverOutcome outcome = DeliverOutcome::kConfirmed;
  std::optional<Millis> delay;  // kRetry: when to try again, instead of the topic's back-off
  std::string reason;           // kRetry and kRefused
  /// kRetry: the receiver surely does not have it, so no attempt is used up: it cannot be reached or, with a delay, it
  /// took nothing because of another job.
  bool unsent = false;
  /// The reason is in the receiver's own words, which may repeat the job: it is stored, and never logged.
  bool quotes = false;
};

inline Delivered Retry(std::string reason) {
  return {.outcome = DeliverOutcome::kRetry, .delay = {}, .reason = std::move(reason)};
}
inline Delivered Refuse(std::string reason) {
  return {.outcome = DeliverOutcome::kRefused, .delay = {}, .reason = std::move(reason)};
}
inline Delivered Unsent(std::string reason) {
  return {.outcome = DeliverOutcome::kRetry, .delay = {}, .reason = std::move(reason), .unsent = true};
}

class Sink {
 public:
  /// For the job at that index of the batch. May run before Deliver returns.
  using Answer = std::move_only_function<void(size_t index, Delivered delivered)>;

  virtual ~Sink() = default;

  /// The batch is not empty, and stays as it is until the last of its jobs is answered.
  virtual void Deliver(std::shared_ptr<const JobBatch> batch, Answer answer) = 0;

  /// Deliver is not called any more. The sink answers what is under way: with kRetry if the receiver does not answer
  /// soon, as unsent if it was not begun. Then `done` runs, and nothing of the sink runs after it: only then may the
  /// sink be destroyed.
  virtual void Close(Task done) = 0;
};

/// Makes the sinks of one kind, and owns what they share. One object for a node; thread-safe. It is destroyed after its
/// sinks, which stops its threads and closes its connections.
class SinkFactory {
 public:
  virtual ~SinkFactory() = default;

  /// Whether a sink could be made for this topic, whose delivery is valid: its settings make sense here, and a secret
  /// that they name is known. Receivers are not asked. kInvalidArgument names the field.
  virtual Status Check(const Topic& topic) const = 0;
  /// The same for a caller who may use only topics of a prefix: what the delivery names has to be given to the topic.
  /// kForbidden names the field. Factories of one kind leave this to that of the node.
  virtual Status CheckGiven(const Topic& /*topic*/) const { return {}; }
  /// Check has passed at some time; its answer may have changed since. Never waits for a receiver. `loop` outlives the
  /// sink.
  virtual Result<std::unique_ptr<Sink>> Open(const Topic& topic, Loop& loop) = 0;
};

}  // namespace tocsin
