// Channel: one topic's jobs on the publisher's thread: those that wait, those that are published and not confirmed, and
// the AMQP channel that carries them. A channel of its own keeps the topic's order, and if the broker closes it
// (because an exchange does not exist) no other topic is affected, and of this one only the jobs for that exchange.
//
// Owned by the publisher, on its thread. Reports leave in batches (Report).
//
// Invariants: each job that was handed over is reported exactly once. No more than `in_flight` are published and not
// confirmed. After Close has been reported nothing is.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/backoff.h"
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
  /// A write ends after the first job that passes this size, so topics with large jobs take turns with the others too.
  static constexpr size_t kWriteBytes = 256 << 10;

  struct Settings {
    size_t in_flight = 1;
    Millis timeout{};
    Millis backoff_min{};  // before a channel that the broker closed is opened again
    Millis backoff_max{};
  };
  /// `closed`: the last one.
  using Report = std::move_only_function<void(std::vector<Outcome> outcomes, bool closed)>;

  Channel(Publisher& publisher, Message message, Settings settings, Report report);

  void Deliver(uint64_t batch_id, std::shared_ptr<const JobBatch> batch);
  /// Gives back what waits; published jobs have a moment more to be confirmed.
  void Close();

  /// Publishes up to `most` jobs while the write has room, or opens the channel first. Whether it published any.
  bool Publish(size_t most);
  bool waiting() const { return !again_.empty() || !waiting_.empty(); }

  void OnFrame(const amqp_frame_t& frame);
  void OnConnectionLost(const std::string& why);
  /// The broker reads again: time-outs begin again for what waited.
  void OnUnblocked() { progress_ = Now(); }
  /// Looks at the deadlines. Returns when to look next.
  TimePoint Check(TimePoint now);
  void SendReport();

  // For topics that wait for a channel. It has a number.
  bool busy() const { return state_ != State::kOpen || HasWork(); }
  /// Closed, or about to be: the number is free soon.
  bool leaving() const { return gives_way_ || state_ == State::kClosing; }
  TimePoint opened_at() const { return opened_at_; }
  /// Publishes no more, and closes the AMQP channel when all is confirmed. What waits then needs another one.
  void GiveWay();

  /// Closed and reported, and the broker has closed it too: it may be destroyed.
  bool gone() const { return reported_ && state_ == State::kIdle; }

  // Kept by the publisher: whether the channel is in its lists.
  bool report_queued = false;
  bool is_scheduled = false;
  bool is_in_line = false;

 private:
  enum class State : uint8_t {
    kIdle,     // no channel
    kOpening,  // asked for
    kOpen,
    kClosing,  // told to close, until the broker confirms it
    kPaused,   // the broker closed it: wait for resume_at_
  };
  struct Batch {
    uint64_t id = 0;
    std::shared_ptr<const JobBatch> jobs;
    uint32_t next = 0;  // the first that is not published
  };
  /// Of an exchange that cannot be published to: until when that is believed, and the broker's words.
  struct Bar {
    TimePoint until{};
    std::string reason;
  };

  void Open();
  void PublishNext(Connection& link, TimePoint now);
  Handed TakeNext();
  /// If the broker said a moment ago that the job's exchange cannot be published to; otherwise null.
  const Bar* BarOf(const JobView& job, TimePoint now);
  void OnMethod(const amqp_method_t& method);
  void OnReturned(const amqp_basic_properties_t& properties);
  void Confirm(uint64_t tag, bool multiple, bool taken);
  void BrokerClosed(const amqp_channel_close_t& close);
  /// The broker closed the channel over this exchange: the jobs for it have failed, and all others are published again.
  /// False: no job is for it.
  bool Blame(const std::string& exchange);
  /// Replaces the AMQP channel: its delivery tags cannot be trusted, or the broker does not answer on it.
  void Reset(const std::string& why);
  void Leave();
  void ReleaseNumber();
  /// Others may have its number, if it has nothing to do.
  void NoteIdle();

  bool HasWork() const { return waiting() || !window_.empty(); }
  void Settle(Handed&& handed, Delivered delivered);
  /// A job of the window that the broker returned is refused; any other one has this outcome.
  void SettleWindow(Handed&& handed, std::string&& returned, Delivered otherwise);
  void RetryWindow(const std::string& why);
  /// Jobs that were not published, or were on a channel that is closed.
  void RetryWaiting(const std::string& why);
  void TimeOut();
  std::string TimeoutReason() const;
  void FinishClose();
  void QueueReport();

  Publisher& publisher_;
  Message message_;
  const Settings settings_;
  Report report_;

  State state_ = State::kIdle;
  uint16_t number_ = 0;
  std::deque<Handed> again_;  // published on a channel that was closed over another job: the next ones to publish
  std::deque<Batch> waiting_;
  Window window_;
  std::map<std::string, Bar> barred_;  // by exchange
  std::vector<Outcome> outcomes_;
  std::string close_reason_;   // why the broker closed the channel; empty after the next confirm
  std::string return_reason_;  // why the broker returns a message, whose headers follow

  TimePoint progress_{};  // when something was confirmed last, or the first job came
  TimePoint resume_at_{};
  TimePoint opened_at_{};
  bool gives_way_ = false;
  Backoff backoff_;
  bool closing_ = false;   // Close was called,
  bool closed_ = false;    // and all is answered,
  bool reported_ = false;  // and the sink knows it
  TimePoint close_by_{};
};

}  // namespace tocsin::rabbitmq
