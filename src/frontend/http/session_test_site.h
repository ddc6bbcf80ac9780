// TestSite: an HTTP server on one loop, with real sockets and a few routes that do what a test wants. The test's own
// thread runs the loop, and time passes when the test says so: deadlines are reached without waiting.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include "core/service.h"
#include "frontend/http/handlers.h"
#include "frontend/http/server.h"
#include "spi/memory_store.h"

namespace tocsin::http {

/// Real time, and what the test adds to it.
class ShiftedClock final : public Clock {
 public:
  Moment Now() const override { return real_.Now(); }
  std::chrono::steady_clock::time_point IoNow() const override { return real_.IoNow() + shift_; }
  void Restore(Moment last) override { real_.Restore(last); }
  void Pass(Millis by) { shift_ += by; }

 private:
  RealClock real_;
  Millis shift_{0};
};

class TestSite : public testing::Test {
 protected:
  static constexpr size_t kBudget = 4 << 20;

  TestSite() { service_.Start(); }
  ~TestSite() override { held.clear(); }

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
    net::Socket accepted(loop_.io());
    acceptor.accept(accepted);
    client.server_end = accepted.native_handle();
    if (client_buffer_bytes > 0) accepted.set_option(boost::asio::socket_base::send_buffer_size(client_buffer_bytes));
    client.socket.non_blocking(true);
    loop_.Post([this, &accepted] { server_->Accept(std::move(accepted), nullptr); });
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
    loop_.Post([this] { server_->Expire(); });
    Settle();
  }
  /// From now on calls need this token, which may do everything.
  std::string AdmitOneToken() {
    std::string token = *auth::MakeToken();
    const auto parts = *auth::SplitToken(token);
    auth::TokenRecord record{.id = std::string(parts.id), .digest = auth::DigestOf(parts.secret)};
    record.grant.scopes.Add(auth::Scope::kAdmin);
    server_->Admit(std::make_shared<auth::TokenSet>(std::vector{std::move(record)}));
    return token;
  }
  double Metric(std::string_view name) {
    const std::string text = metrics_.RenderPrometheus();
    const size_t at = text.find(fmt::format("\n{} ", name));
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }

  static inline std::vector<Answer> held;   // of requests to /hold
  static inline size_t large_bytes = 1024;  // of the answer to /large
  int client_buffer_bytes = 0;              // small, so that little is sent before it is read; 0: the system's choice

  ShiftedClock clock_;
  metrics::Registry metrics_;
  net::AsioLoop loop_{clock_};
  metrics::Scraper scraper_{metrics_};
  boost::asio::io_context client_io_;
  MemoryStore store_;
  Service service_{{{.loop = &loop_, .store = &store_}}, clock_, metrics_};
  net::Budget budget_{kBudget, metrics_};
  Router router_{{
      {.method = Verb::get, .pattern = "/small", .handler = [](Call& call) { call.answer.Send({.body = "small"}); }},
      {.method = Verb::get,
       .pattern = "/large",
       .handler = [](Call& call) { call.answer.Send({.body = std::string(large_bytes, 'x')}); }},
      {.method = Verb::get,
       .pattern = "/{n}/number",
       .handler = [](Call& call) { call.answer.Send({.body = call.params[0]}); }},
      {.method = Verb::post, .pattern = "/hold", .handler = [](Call& call) { held.push_back(std::move(call.answer)); }},
      {.method = Verb::post,
       .pattern = "/length",
       .handler = [](Call& call) { call.answer.Send({.body = fmt::format("length {}", call.body.size())}); }},
      {.method = Verb::post,
       .pattern = "/reserve",
       .handler =
           [](Call& call) {
             call.Park(call.context.service.Reserve(call.loop, {.topic = "t", .wait = Millis(60'000)},
                                                    [answer = std::move(call.answer)](const auto&) mutable {
                                                      if (answer.Wanted()) answer.Send({.body = "reserved"});
                                                    }));
           }},
      {Verb::post, "/v1/topics/{topic}/jobs", Access::kSubmit, SubmitJobs},
      {Verb::get, "/v1/topics/{topic}/jobs", Access::kTopicAdmin, ListJobs},
      {Verb::post, "/v1/topics/{topic}/reserve", Access::kConsume, ReserveJobs},
      {Verb::post, "/v1/topics/{topic}/ack", Access::kConsume, AckJobs},
      {Verb::get, "/metrics", Access::kNodeAdmin, ShowMetrics},
  }};
  std::unique_ptr<Server> server_ =
      std::make_unique<Server>(Context{service_, clock_, nullptr, metrics_, scraper_}, router_, budget_, loop_,
                               Options{.body_bytes_max = 16 << 20});
};

}  // namespace tocsin::http
