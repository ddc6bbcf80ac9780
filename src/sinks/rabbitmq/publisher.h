// Publisher: the node's one connection to RabbitMQ, for the sinks of all topics, on a thread of its own
// (`tocsin-rabbit`), so that encoding and waiting cost the shards nothing. It connects when the first sink is opened,
// and again, with a back-off, whenever the connection is lost.
//
// Owned by the composition root; outlives its sinks. Make, Open and the destructor on any thread; the rest of it lives
// on its own.
//
// Invariants: jobs of a topic are published in the order of Deliver. One write to the socket is under way at a time,
// with many jobs in it, dealt out to the topics in turn; no more than one such buffer is encoded ahead.
#pragma once

#include <atomic>
#include <memory>
#include <random>
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

/// Whether a sink can be made for this topic. kInvalidArgument names the setting.
Status CheckTopic(const Topic& topic);

class Publisher final : private Connection::Owner, private Channel::Owner {
 public:
  /// Connects to nothing yet. kInvalidArgument where the file of authorities cannot be used.
  static Result<std::unique_ptr<Publisher>> Make(Options options);
  /// After all sinks are closed.
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// `loop` outlives the sink.
  Result<std::unique_ptr<Sink>> Open(const Topic& topic, Loop& loop);

 private:
  friend class RabbitSink;

  Publisher(Options options, std::unique_ptr<boost::asio::ssl::context> tls);

  // What a sink asks for.
  void Add(std::unique_ptr<Channel> channel);
  void Deliver(Channel& channel, uint64_t batch_id, std::shared_ptr<const JobBatch> batch);
  void CloseChannel(Channel& channel);

  // Connection::Owner
  void Up() override;
  void Heard(const amqp_frame_t& frame) override;
  void ReadDone() override;
  void Written() override;
  void SetBlocked(bool blocked, std::string_view reason) override;
  void Lost(const std::string& why) override;

  // Channel::Owner
  Connection* Link() override { return connection_ != nullptr && connection_->up() ? connection_.get() : nullptr; }
  bool Blocked() const override { return blocked_; }
  std::string Trouble() const override;
  uint16_t TakeNumber(Channel& channel) override;
  void FreeNumber(uint16_t number) override;
  void HasNews(Channel& channel) override { news_.push_back(&channel); }
  void WakeAt(TimePoint time) override;
  std::mt19937& Random() override { return random_; }

  void Connect();
  void Schedule(Channel& channel);
  /// Fills the buffer for the next write from the topics that have jobs, in turn.
  void Publish();
  /// What every turn ends with: publishes, reports, forgets what is gone.
  void EndTurn();
  void OnTimer();
  void Stop();

  const Options options_;
  const std::unique_ptr<boost::asio::ssl::context> tls_;
  const RealClock clock_;  // the loop asks for one
  net::AsioLoop loop_{clock_};
  boost::asio::steady_timer timer_{loop_.io()};
  TimePoint timer_at_ = TimePoint::max();
  std::mt19937 random_{std::random_device{}()};

  std::shared_ptr<Connection> connection_;  // null between two
  bool connected_once_ = false;
  bool was_up_ = false;  // the present connection, or the one that is being lost
  bool blocked_ = false;
  std::string trouble_;                      // why there is no connection; empty where there is one
  TimePoint connect_at_ = TimePoint::max();  // the next try
  Millis pause_{0};
  bool stopping_ = false;

  std::vector<std::unique_ptr<Channel>> channels_;
  size_t closing_ = 0;               // of them
  std::vector<Channel*> by_number_;  // of AMQP's; the first is never used
  uint16_t last_number_ = 0;
  std::vector<Channel*> scheduled_;  // those with jobs that wait
  size_t turn_ = 0;                  // whose of them it is
  std::vector<Channel*> news_;

  std::atomic<size_t> sinks_ = 0;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace tocsin::rabbitmq
