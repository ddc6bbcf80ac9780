// Publisher: makes the RabbitMQ sinks of a node, and owns the one connection that they share. It works on a thread of
// its own (`tocsin-rabbit`), so that encoding and waiting cost the shards nothing. It connects when the first sink is
// opened, and again, with a back-off, whenever the connection is lost.
//
// Make, Check, Open and the destructor may be called on any thread; the rest belongs to its own thread.
//
// A connection has a bounded number of channels. If there are more topics with jobs, they take turns. A turn of the
// loop looks only at topics that something has happened to, so that a job costs the same however many others wait.
//
// Invariants: jobs of a topic are published in the order of Deliver. One write to the socket is under way at a time,
// with many jobs of all topics in turn; no more than one such buffer is encoded ahead.
#pragma once

#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "model/topic.h"
#include "net/asio_loop.h"
#include "sinks/rabbitmq/channel.h"
#include "sinks/rabbitmq/connection.h"
#include "sinks/rabbitmq/options.h"
#include "spi/sink.h"

namespace tocsin::rabbitmq {

class Publisher final : public SinkFactory {
 public:
  /// Does not connect yet. kInvalidArgument if the file of certificates cannot be used.
  static Result<std::unique_ptr<Publisher>> Make(Options options);
  ~Publisher() override;

  Status Check(const Topic& topic) const override;
  Result<std::unique_ptr<Sink>> Open(const Topic& topic, Loop& loop) override;

  /// How often it has looked at a topic to publish, or to take its channel away. For tests.
  uint64_t looks() const { return looks_; }

 private:
  friend class Channel;
  friend class Connection;
  class TopicSink;

  Publisher(Options options, std::unique_ptr<boost::asio::ssl::context> tls);

  // For the sinks.
  void Add(std::unique_ptr<Channel> channel);
  void Deliver(Channel& channel, uint64_t batch_id, std::shared_ptr<const JobBatch> batch);
  void CloseChannel(Channel& channel);

  // For the connection.
  /// Channels may be opened.
  void OnUp();
  /// A frame of a channel; valid during the call.
  void OnFrame(const amqp_frame_t& frame);
  /// The broker has an alarm and reads nothing until `blocked` is false again.
  void OnBlocked(bool blocked, std::string_view reason);
  void OnLost(const std::string& why);
  /// All frames of one read were handed over, or a write is done: publishes, reports, and destroys channels that are
  /// gone.
  void EndTurn();

  // For the channels.
  /// Null while there is no connection.
  Connection* Link() { return connection_ != nullptr && connection_->up() ? connection_.get() : nullptr; }
  /// Why there is no connection; empty if there is one.
  std::string WhyDown() const;
  /// Something has changed for it: if it has jobs, it may publish some now. A channel that could publish nothing is not
  /// looked at again before this.
  void Schedule(Channel& channel);
  /// A number for a channel with jobs, or 0 if all are in use: then it is its turn when one is free, after those that
  /// asked before.
  uint16_t TakeNumber(Channel& channel);
  void GiveNumber(uint16_t number);
  /// Its channel is closed soon.
  void Leaves(uint16_t number);
  /// Its channel is open, and has nothing to do.
  void NoteIdle(uint16_t number);
  /// Calls their Check at that time.
  void WakeAt(TimePoint time);

  void Connect();
  /// Closes channels that others wait for: first those without jobs, then those that have had one for long.
  void MakeRoom();
  void DropFromLine(Channel& channel);
  /// A number may be free: the first in line takes it.
  void WakeLine();
  /// Fills the buffer for the next write from the topics that have jobs, in turn.
  void Publish();
  void OnTimer();
  void Stop();

  const Options options_;
  const std::unique_ptr<boost::asio::ssl::context> tls_;
  const RealClock clock_;  // for the loop
  net::AsioLoop loop_{clock_};
  boost::asio::steady_timer timer_{loop_.io()};
  TimePoint timer_at_ = TimePoint::max();

  std::shared_ptr<Connection> connection_;  // null while it waits for the next try
  bool connected_once_ = false;
  bool was_up_ = false;  // the present connection
  bool blocked_ = false;
  std::string last_error_;                   // why the last connection failed; empty while one is up
  TimePoint connect_at_ = TimePoint::max();  // the next try
  Backoff backoff_{options_.backoff_min, options_.backoff_max};
  bool stopping_ = false;

  std::vector<std::unique_ptr<Channel>> channels_;
  size_t closing_ = 0;               // of channels_
  std::vector<Channel*> by_number_;  // by AMQP's channel number; 0 is never used
  uint16_t last_number_ = 0;
  size_t numbers_used_ = 0;
  struct Use {
    bool is_idle = false;  // it is in idle_
    bool stays = false;    // it is in staying_,
    std::list<uint16_t>::iterator place;
  };
  std::vector<Use> uses_;            // by number
  std::list<uint16_t> staying_;      // numbers in use whose channel does not leave, the oldest first
  std::deque<uint16_t> idle_;        // numbers whose channel had nothing to do when they were added
  std::deque<Channel*> line_;        // with jobs, and without a number
  std::deque<Channel*> scheduled_;   // may publish, in turn
  std::vector<Channel*> to_report_;  // at the end of the turn

  std::atomic<size_t> sinks_ = 0;
  std::atomic<uint64_t> looks_ = 0;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace tocsin::rabbitmq
