// Connection: one connection to RabbitMQ: connects, logs in, sends and expects heartbeats, hands frames of channels to
// the publisher, and tells it when the broker blocks the connection. Once it is lost it is not used again.
//
// Owned by the publisher, and by its own handlers. On the publisher's thread.
//
// Invariants: OnUp runs at most once, then OnLost at most once, and nothing after OnLost or Close. Nothing blocks:
// bytes that the broker does not read wait in one write, and what is appended meanwhile in out().
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

class Publisher;

using TimePoint = std::chrono::steady_clock::time_point;
inline TimePoint Now() { return std::chrono::steady_clock::now(); }

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  /// `tls` null: plain TCP. All of them outlive it.
  Connection(boost::asio::io_context& io, boost::asio::ssl::context* tls, const Options& options, Publisher& publisher);

  void Start();
  bool up() const { return step_ == Step::kUp; }
  uint16_t channel_max() const { return channel_max_; }

  /// What is appended here is written by the next Flush, or after the write under way.
  std::string& out() { return out_; }
  Encoder& encoder() { return encoder_; }
  void Flush();

  /// Looks at the deadlines. Returns when to look next.
  TimePoint Check(TimePoint now);
  /// Tells the broker to close; OnLost follows. Does nothing if the connection is not up.
  void RequestClose();
  /// The publisher is not called any more.
  void Close();

 private:
  enum class Step : uint8_t { kConnecting, kStart, kTune, kOpen, kUp, kClosing, kClosed };

  void OnConnected(const boost::system::error_code& error);
  void Read();
  void OnRead(const boost::system::error_code& error, size_t count);
  /// Whether to go on.
  bool OnFrame(const amqp_frame_t& frame);
  void OnMethod(const amqp_method_t& method);
  void Login(const amqp_connection_start_t& start);
  void Tune(const amqp_connection_tune_t& tune);
  void OnClose(const amqp_connection_close_t& close);
  bool Expect(Step step, std::string_view method);
  void Fail(std::string why);

  const Options& options_;
  Publisher& publisher_;
  net::Stream stream_;
  Encoder encoder_;
  Decoder decoder_;
  Step step_ = Step::kConnecting;
  uint16_t channel_max_ = 0;
  std::chrono::seconds heartbeat_{0};  // as agreed; 0: none

  std::string out_;
  std::string sending_;
  bool writing_ = false;
  std::vector<char> buffer_;

  TimePoint deadline_{};  // of the present step, unless it is up
  TimePoint written_at_{};
  TimePoint read_at_{};
};

}  // namespace tocsin::rabbitmq
