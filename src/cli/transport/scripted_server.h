// For tests: a server that plays one connection after the other, each by its own script on one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>

#include "cli/transport/endpoint.h"

namespace tocsin::cli {

class ScriptedServer {
 public:
  using Script = std::function<void(ScriptedServer&)>;

  explicit ScriptedServer(std::vector<Script> scripts)
      : acceptor_(io_, {boost::asio::ip::make_address("127.0.0.1"), 0}), thread_([this, scripts = std::move(scripts)] {
          for (const Script& script : scripts) {
            socket_.emplace(acceptor_.accept());
            script(*this);
            socket_.reset();
          }
        }) {}
  ~ScriptedServer() { thread_.join(); }

  Endpoint endpoint() const {
    return ParseEndpoint(fmt::format("http://127.0.0.1:{}", acceptor_.local_endpoint().port())).value();
  }

  /// What the client sent, up to `end`, or until it closed.
  std::string ReadUntil(std::string_view end) {
    boost::asio::streambuf buffer;
    boost::system::error_code ignored;
    boost::asio::read_until(*socket_, buffer, std::string(end), ignored);
    return {static_cast<const char*>(buffer.data().data()), buffer.size()};
  }
  void Write(std::string_view text) {
    boost::system::error_code ignored;  // a client that went away has seen enough
    boost::asio::write(*socket_, boost::asio::buffer(text), ignored);
  }
  void AwaitClose() {
    boost::system::error_code closed;
    std::string ignored;
    boost::asio::read(*socket_, boost::asio::dynamic_buffer(ignored), closed);
  }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::optional<boost::asio::ip::tcp::socket> socket_;
  std::thread thread_;
};

}  // namespace tocsin::cli
