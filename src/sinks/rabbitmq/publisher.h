// Publisher: makes the RabbitMQ sinks of a node, and owns the one connection that they share. It works on a thread of
// its own (`tocsin-rabbit`), so that encoding and waiting cost the shards nothing. It connects when the first sink is
// opened, and again, with a back-off, whenever the connection is lost.
//
// Make, Check, Open and the destructor may be called on any thread; the rest belongs to its own thread.
//
// Invariants: jobs of a topic are published in the order of Deliver. One write to the socket is under way at a time,
// with many jobs of all topics in turn; no more than one such buffer is encoded ahead.
#pragma once

#include <atomic>
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

class Publisher final : public SinkFactory, private Connection::Owner, private Channel::Owner {
 public:
  /// Does not connect yet. kInvalidArgument if the file of certificates cannot be used.
  static Result<std::unique_ptr<Publisher>> Make(Options options);
  ~Publisher() override;

  Status Check(const Topic& topic) const override;
  Result<std::unique_ptr<Sink>> Open(const Topic& topic, Loop& loop) override;

 private:
  friend class RabbitSink;

  Publisher(Options options, std::unique_ptr<boost::asio::ssl::context> tls);

  // For RabbitSink.
  void Add(std::unique_ptr<Channel> channel);
  void Deliver(Channel& channel, uint64_t batch_id, std::shared_ptr<const JobBatch> batch);
  void CloseChannel(Channel& channel);

  // Connection::Owner
  void OnUp() override;
  void OnFrame(const amqp_frame_t& frame) override;
  void OnTurn() override { EndTurn(); }
  void OnBlocked(bool blocked, std::string_view reason) override;
  void OnLost(const std::string& why) override;

  // Channel::Owner
  Connection* Link() override { return connection_ != nullptr && connection_->up() ? connection_.get() : nullptr; }
  bool Blocked() const override { return blocked_; }
  std::string WhyDown() const override;
  uint16_t TakeNumber(Channel& channel) override;
  void FreeNumber(uint16_t number) override;
  void QueueReport(Channel& channel) override { to_report_.push_back(&channel); }
  void WakeAt(TimePoint time) override;

  void Connect();
  void Schedule(Channel& channel);
  /// Fills the buffer for the next write from the topics that have jobs, in turn.
  void Publish();
  /// Publishes, reports, and destroys channels that are gone.
  void EndTurn();
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
  std::vector<Channel*> scheduled_;  // with jobs that wait
  size_t turn_ = 0;                  // index in scheduled_ of the last one that published
  std::vector<Channel*> to_report_;  // at the end of the turn

  std::atomic<size_t> sinks_ = 0;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace tocsin::rabbitmq
