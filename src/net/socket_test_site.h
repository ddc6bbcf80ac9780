// SocketTest: what tests of a server on real sockets share. One loop, run by the test's own thread; clients that never
// block; time passes when the test says so, and deadlines are reached without waiting.
#pragma once

#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include "net/asio_loop.h"
#include "net/listener.h"
#include "sim/shifted_clock.h"

namespace tocsin::net {

class SocketTest : public testing::Test {
 protected:
  /// The server takes a connection; on the loop.
  virtual void Accept(Socket socket) = 0;
  /// The server looks at its deadlines; on the loop.
  virtual void Expire() = 0;

  /// A client's end of a connection. It never blocks: the loop runs while it waits.
  struct Client {
    boost::asio::ip::tcp::socket socket;
    std::string got;
    bool closed = false;
    int server_end = -1;  // for looking at, while it is open

    /// False where nothing came.
    bool Take() {
      char bytes[4096];
      boost::system::error_code error;
      const size_t count = socket.read_some(boost::asio::buffer(bytes), error);
      got.append(bytes, count);
      if (error && error != boost::asio::error::would_block) closed = true;
      return count > 0;
    }
  };

  Client Connect() {
    boost::asio::ip::tcp::acceptor acceptor(client_io_, {boost::asio::ip::address_v4::loopback(), 0});
    Client client{boost::asio::ip::tcp::socket(client_io_), {}};
    client.socket.open(boost::asio::ip::tcp::v4());
    if (client_buffer_bytes > 0) {
      client.socket.set_option(boost::asio::socket_base::receive_buffer_size(client_buffer_bytes));
    }
    client.socket.connect(acceptor.local_endpoint());
    Socket accepted(loop_.io());
    acceptor.accept(accepted);
    accepted.set_option(boost::asio::ip::tcp::no_delay(true));  // as the listener does
    client.server_end = accepted.native_handle();
    if (client_buffer_bytes > 0) accepted.set_option(boost::asio::socket_base::send_buffer_size(client_buffer_bytes));
    client.socket.non_blocking(true);
    loop_.Post([this, &accepted] { Accept(std::move(accepted)); });
    RunWhile([&] { return accepted.is_open(); });
    return client;
  }

  /// Runs the loop until `waiting` is false; fails the test where that takes too long.
  template <class Waiting>
  void RunWhile(Waiting waiting) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (waiting()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      loop_.io().run_one_for(Millis(1));
    }
  }
  /// Everything that can happen by now has happened.
  void Settle() {
    while (loop_.io().poll() > 0) {
    }
  }

  void Send(Client& client, std::string_view bytes) {
    RunWhile([&] {
      boost::system::error_code error;
      bytes.remove_prefix(client.socket.write_some(boost::asio::buffer(bytes), error));
      return !bytes.empty();
    });
    Settle();
  }
  /// All that comes until the server closes.
  std::string ReadToEnd(Client& client) {
    RunWhile([&] {
      while (client.Take()) {
      }
      return !client.closed;
    });
    return std::move(client.got);
  }
  /// All that comes until it ends with `end`.
  std::string ReadUntil(Client& client, std::string_view end) {
    RunWhile([&] {
      while (client.Take()) {
      }
      return !client.closed && !client.got.ends_with(end);
    });
    return std::move(client.got);
  }
  /// True where the server has closed, and said nothing more.
  bool IsClosed(Client& client) {
    Settle();
    client.Take();
    return client.closed && client.got.empty();
  }
  /// Bytes that the client sent and the server has not read.
  static size_t Unread(const Client& client) {
    int bytes = 0;
    EXPECT_EQ(ioctl(client.server_end, FIONREAD, &bytes), 0);
    return static_cast<size_t>(bytes);
  }
  void Pass(Millis by) {
    clock_.Pass(by);
    loop_.Post([this] { Expire(); });
    Settle();
  }

  int client_buffer_bytes = 0;  // small, so that little is sent before it is read; 0: the system's choice

  ShiftedClock clock_;
  AsioLoop loop_{clock_};
  boost::asio::io_context client_io_;
};

}  // namespace tocsin::net
