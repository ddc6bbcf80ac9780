// Stream: a TCP connection to a server, with TLS if it has a TLS context. On the thread of `io`; its owner's handlers
// keep it alive. Every handler runs exactly once, never within the call that took it; after Close with an error.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "base/result.h"

namespace tocsin::net {

struct Tls {
  bool on = false;
  std::string ca_file;    // empty: the system's
  std::string cert_file;  // of a client certificate, with key_file; empty: none
  std::string key_file;
  bool verify = true;
};

/// Loads the files. Null without TLS; kInvalidArgument, with the file, if one cannot be used.
Result<std::unique_ptr<boost::asio::ssl::context>> MakeTlsContext(const Tls& tls);

class Stream {
 public:
  using Done = std::move_only_function<void(const boost::system::error_code&)>;
  using Moved = std::move_only_function<void(const boost::system::error_code&, size_t)>;

  /// `tls` null: plain TCP.
  Stream(boost::asio::io_context& io, boost::asio::ssl::context* tls);

  /// Resolves the name, connects and does the TLS handshake; `verify_name`: the certificate must be the host's.
  void Connect(std::string host, uint16_t port, bool verify_name, Done done);
  void Read(boost::asio::mutable_buffer into, Moved moved);
  /// All of it.
  void Write(boost::asio::const_buffer bytes, Moved moved);
  void Close();

 private:
  using Executor = boost::asio::io_context::executor_type;
  using Tcp = boost::asio::ip::tcp;
  using Socket = boost::asio::basic_stream_socket<Tcp, Executor>;

  void ConnectTo(const Tcp::resolver::results_type& addresses, Done done);
  void Connected(Done done);
  boost::system::error_code Prepare();

  boost::asio::ip::basic_resolver<Tcp, Executor> resolver_;
  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
  std::string host_;
  bool verify_name_ = false;
  bool closed_ = false;
};

}  // namespace tocsin::net
