// Listener: accepts TCP connections and hands them to the shards' loops in turn, up to a limit of open connections.
//
// Only the main thread, whose io_context it was opened on, uses it. Every accepted socket belongs to its shard's
// io_context from the start; a posted task hands it over with a ConnectionPass. The connection counts until its pass is
// destroyed, on any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/result.h"
#include "net/asio_loop.h"

namespace tocsin::net {

using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

/// Where a listener binds.
struct Address {
  std::string host;  // an IP address, without brackets
  uint16_t port = 0;
  bool loopback = false;
  bool v6 = false;

  /// host:port, with the brackets of IPv6.
  std::string Text() const;
};

/// `host` is an IP address without brackets, or localhost. Other names are refused: the bound address must not depend
/// on a resolver.
Result<Address> MakeAddress(std::string_view host, uint16_t port);

/// One connection's place under the limit.
using ConnectionPass = std::shared_ptr<const void>;

class Listener {
 public:
  /// The open connections of all listeners that share it.
  using Count = std::shared_ptr<std::atomic<size_t>>;
  struct Options {
    size_t connections_max = 10'000;
    std::string refusal;  // sent to a connection over the limit before it is closed
    Count count = std::make_shared<std::atomic<size_t>>(0);
  };
  /// Connections over the limit that are told so at a time; others are closed without an answer.
  static constexpr size_t kRefusalsMax = 32;
  /// Runs on the loop's thread.
  using Handler = std::function<void(size_t shard, Socket socket, ConnectionPass pass)>;

  /// Binds; Start begins to accept. kInUse if the address is taken.
  static Result<std::unique_ptr<Listener>> Open(boost::asio::io_context& io, const Address& address, Options options);

  void Start(std::vector<AsioLoop*> loops, Handler handler);
  void Close();

  /// The address that it is bound to, with the real port instead of 0.
  const Address& address() const { return address_; }

 private:
  Listener(boost::asio::io_context& io, Options options);
  Status Bind(const Address& address);
  void Accept();
  void Accepted(size_t shard, Socket socket);
  void Refuse(Socket socket);

  boost::asio::io_context& io_;
  const Options options_;
  Address address_;
  boost::asio::basic_socket_acceptor<boost::asio::ip::tcp, boost::asio::io_context::executor_type> acceptor_;
  boost::asio::basic_waitable_timer<std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>,
                                    boost::asio::io_context::executor_type>
      pause_;
  std::vector<AsioLoop*> loops_;
  Handler handler_;
  size_t next_shard_ = 0;
  std::shared_ptr<size_t> refusing_ = std::make_shared<size_t>(0);
};

}  // namespace tocsin::net
