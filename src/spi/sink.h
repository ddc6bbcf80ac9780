// Sink: where the jobs of one topic are pushed to. One Sink object serves one topic on one node; it is made anew when
// the topic's delivery changes. Every sink passes the same contract suite (spi/contract/sink_contract.h) against a real
// receiver.
//
// Threads: every method is called on the thread of the Loop that the sink was made with, and answers come on it too.
//
// What every sink promises:
//  - Each job of each batch is answered exactly once, also when the receiver hangs, dies or is closed.
//  - kConfirmed is said only after the receiver has said that it has the job.
//  - Where the receiver keeps order, jobs reach it in the order in which Deliver was called, and in their order within
//    a batch, unless one of them has to be tried again.
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
  std::optional<Millis> delay;  // kRetry: what the receiver asked for, instead of the topic's back-off
  std::string reason;           // kRetry and kRefused
  bool unsent = false;          // kRetry: it surely never left this server, so that no attempt is used up
};

class Sink {
 public:
  /// For the job at that index of the batch. May run before Deliver returns.
  using Answer = std::move_only_function<void(size_t index, Delivered delivered)>;

  virtual ~Sink() = default;

  /// The batch is not empty, and stays as it is until the last of its jobs is answered.
  virtual void Deliver(std::shared_ptr<const JobBatch> batch, Answer answer) = 0;

  /// Nothing more is delivered. What is under way is answered, kRetry where that is not known soon, and unsent where it
  /// was not begun; then `done` runs, and nothing of the sink runs after it: only then may the sink be destroyed.
  virtual void Close(Task done) = 0;
};

/// Makes sinks. One object for a node; thread-safe.
class Sinks {
 public:
  virtual ~Sinks() = default;

  /// Whether a sink could be made for this topic: its settings make sense here, a secret that they name is known, the
  /// server is configured for that kind of sink. Receivers are not asked. kInvalidArgument names the field.
  virtual Status Check(const Topic& topic) const = 0;
  /// After Check has passed at some time; what it says may have changed since. Never waits for a receiver.
  virtual Result<std::unique_ptr<Sink>> Open(const Topic& topic, Loop& loop) = 0;
};

}  // namespace tocsin
