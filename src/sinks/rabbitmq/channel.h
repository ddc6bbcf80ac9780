// Channel: one topic's jobs on the publisher's thread: those that wait, those that were published and are not
// confirmed, and the AMQP channel that carries them. A channel of its own keeps the topic's order, and what closes it
// (an exchange that does not exist) harms no other topic.
//
// Owned by the publisher, on its thread. Reports leave in batches (Report).
//
// Invariants: each job that was handed over is reported exactly once. No more than `in_flight` are published and not
// confirmed. After Close has been reported nothing is.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sinks/rabbitmq/connection.h"
#include "sinks/rabbitmq/message.h"
#include "sinks/rabbitmq/window.h"
#include "spi/sink.h"

namespace tocsin::rabbitmq {

/// What became of one job.
struct Outcome {
  uint64_t batch_id = 0;
  uint32_t index = 0;
  Delivered delivered;
};

class Channel {
 public:
  /// Encoded for one write, and one job more: a topic with large jobs takes turns with the others too.
  static constexpr size_t kWriteBytes = 256 << 10;

  /// What the publisher knows, and does for its channels.
  class Owner {
   public:
    /// Null where there is no connection.
    virtual Connection* Link() = 0;
    virtual bool Blocked() const = 0;
    /// Why there is no connection.
    virtual std::string Trouble() const = 0;
    /// A number for a channel, or 0 where all are in use; and when it may be used again.
    virtual uint16_t TakeNumber(Channel& channel) = 0;
    virtual void FreeNumber(uint16_t number) = 0;
    /// It has something to report at the end of the turn.
    virtual void HasNews(Channel& channel) = 0;
    /// Check is to be called then.
    virtual void WakeAt(TimePoint time) = 0;
    virtual std::mt19937& Random() = 0;

   protected:
    ~Owner() = default;
  };

  struct Settings {
    size_t in_flight = 1;
    Millis timeout{};
    Millis rest_min{};  // before a channel that the broker closed is opened again: doubled each time, with jitter
    Millis rest_max{};
  };
  /// `closed`: the last one.
  using Report = std::move_only_function<void(std::vector<Outcome> outcomes, bool closed)>;

  Channel(Owner& owner, Message message, Settings settings, Report report);

  void Deliver(uint64_t batch_id, std::shared_ptr<const JobBatch> batch);
  /// What waits is given back; what was published has a moment more to be confirmed.
  void Close();

  /// Publishes up to `most` jobs, as far as the write has room, or opens the channel first. Whether it published any.
  bool Publish(size_t most);
  bool waiting() const { return !waiting_.empty(); }

  void Heard(const amqp_frame_t& frame);
  void ConnectionLost(const std::string& why);
  /// The broker reads again: time begins anew for what waited.
  void Unblocked() { progress_ = std::chrono::steady_clock::now(); }
  /// Looks at the deadlines. When to look next.
  TimePoint Check(TimePoint now);
  void SendReport();
  /// Closed, reported, and the broker knows it: it may be destroyed.
  bool gone() const { return reported_ && state_ == State::kIdle; }

  bool has_news = false;      // the publisher's own: it is in its list
  bool is_scheduled = false;  // the same

 private:
  enum class State : uint8_t {
    kIdle,     // no channel
    kOpening,  // asked for
    kOpen,
    kClosing,  // told to close, until the broker says that it is
    kResting,  // the broker closed it: a pause
  };
  struct Batch {
    uint64_t id = 0;
    std::shared_ptr<const JobBatch> jobs;
    uint32_t next = 0;  // the first that is not published
  };

  void Open();
  void PublishNext(Connection& link, TimePoint now);
  void HeardMethod(const amqp_method_t& method);
  void HeardReturned(const amqp_basic_properties_t& properties);
  void Confirm(uint64_t tag, bool multiple, bool taken);
  void BrokerClosed(const amqp_channel_close_t& close);
  /// Opens another one: this one's numbers cannot be trusted, or nothing is heard on it.
  void Reset(const std::string& why);
  void Leave();
  void ReleaseNumber(State next);
  void Rest();

  bool HasWork() const { return !waiting_.empty() || !window_.empty(); }
  void Settle(Handed&& handed, DeliverOutcome outcome, std::string reason) {
    Settle(std::move(handed), {.outcome = outcome, .delay = {}, .reason = std::move(reason)});
  }
  void Settle(Handed&& handed, Delivered delivered);
  void RetryWindow(const std::string& why);
  /// Those that were not published.
  void RetryWaiting(const Delivered& retry);
  void TimeOut();
  std::string Silence() const;
  void FinishClose();
  void News();

  Owner& owner_;
  Message message_;
  const Settings settings_;
  Report report_;

  State state_ = State::kIdle;
  uint16_t number_ = 0;
  std::deque<Batch> waiting_;
  Window window_;
  std::vector<Outcome> outcomes_;
  std::string trouble_;    // why the broker closed the channel; empty once something was confirmed again
  std::string returning_;  // what the broker said of the message that is coming back; its name follows

  TimePoint progress_{};  // when something was confirmed last, or the first job came
  TimePoint rest_until_{};
  Millis rest_{0};
  bool closing_ = false;   // Close was called ...
  bool closed_ = false;    // ... and all is answered ...
  bool reported_ = false;  // ... and that was said
  TimePoint close_by_{};
};

}  // namespace tocsin::rabbitmq
