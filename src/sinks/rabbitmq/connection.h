// Connection: one connection to RabbitMQ, from the first packet to the last: connects, logs in, keeps the heartbeats,
// hands frames of channels to its owner, and says when the broker blocks it. It is never used again once it is lost.
//
// Owned by the publisher, and by its own handlers. On the publisher's thread.
//
// Invariants: the owner is told Up at most once, then Lost at most once, and nothing after Lost or Close. Nothing
// blocks: bytes that the broker does not read wait in one write, and what is appended meanwhile in out().
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/stream.h"
#include "sinks/rabbitmq/codec.h"
#include "sinks/rabbitmq/options.h"

namespace tocsin::rabbitmq {

using TimePoint = std::chrono::steady_clock::time_point;

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  class Owner {
   public:
    /// Channels may be opened.
    virtual void Up() = 0;
    /// A frame of a channel; valid during the call.
    virtual void Heard(const amqp_frame_t& frame) = 0;
    /// All frames of one read were handed over.
    virtual void ReadDone() = 0;
    /// What was to be written has been taken by the system.
    virtual void Written() = 0;
    /// The broker reads nothing more for now: an alarm. Until `blocked` is false again.
    virtual void SetBlocked(bool blocked, std::string_view reason) = 0;
    virtual void Lost(const std::string& why) = 0;

   protected:
    ~Owner() = default;
  };

  /// `tls` null: plain TCP. All of them outlive it.
  Connection(boost::asio::io_context& io, boost::asio::ssl::context* tls, const Options& options, Owner& owner);

  void Start();
  bool up() const { return step_ == Step::kUp; }
  uint16_t channel_max() const { return channel_max_; }

  /// What is appended here leaves with the next Flush, or behind the write that is under way.
  std::string& out() { return out_; }
  Encoder& encoder() { return encoder_; }
  void Flush();
  bool writing() const { return writing_; }

  /// Looks at the deadlines. When to look next.
  TimePoint Check(TimePoint now);
  /// Tells the broker; its answer is a loss. Where it is not up, nothing.
  void SayGoodbye();
  /// Nothing is called any more.
  void Close();

 private:
  enum class Step : uint8_t { kConnecting, kStart, kTune, kOpen, kUp, kGoodbye, kClosed };

  void Connected(const boost::system::error_code& error);
  void Read();
  void Received(const boost::system::error_code& error, size_t count);
  /// Whether to go on.
  bool Take(const amqp_frame_t& frame);
  void TakeOwn(const amqp_method_t& method);
  void Login(const amqp_connection_start_t& start);
  void Tune(const amqp_connection_tune_t& tune);
  void Opened();
  void Closed(const amqp_connection_close_t& close);
  bool Expect(Step step, std::string_view method);
  void Fail(std::string why);

  const Options& options_;
  Owner& owner_;
  net::Stream stream_;
  Encoder encoder_;
  Decoder decoder_;
  Step step_ = Step::kConnecting;
  uint16_t channel_max_ = 0;
  std::chrono::seconds heartbeat_{0};  // agreed on; 0: none

  std::string out_;
  std::string sending_;
  bool writing_ = false;
  std::vector<char> buffer_;

  TimePoint deadline_{};  // of the step under way, unless it is up
  TimePoint sent_{};      // when something was written last
  TimePoint heard_{};     // and read
};

}  // namespace tocsin::rabbitmq
