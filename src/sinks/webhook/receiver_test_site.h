// Receiver: a real HTTP server on loopback, on a thread of its own, that tests of webhooks post to. A handler says how
// it answers; it can be killed, start again at the same port, and hang.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

namespace tocsin::webhook {

struct Received {
  int connection = 0;  // counted from 1
  std::string target;
  std::map<std::string, std::string> fields;  // names in small letters
  std::string body;

  std::string Field(const std::string& name) const { return fields.contains(name) ? fields.at(name) : ""; }
};

struct Reply {
  unsigned status = 200;
  std::string fields;  // more of them, each with its CRLF
  std::string body;
  std::string raw;      // instead of all that
  bool close = false;   // after it
  bool silent = false;  // nothing is said
};

class Receiver {
 public:
  using Handler = std::function<Reply(const Received&)>;
  using Tcp = boost::asio::ip::tcp;

  /// `tls` may be null, and outlives it.
  explicit Receiver(Handler handler, boost::asio::ssl::context* tls = nullptr, const std::string& host = "127.0.0.1")
      : handler_(std::move(handler)), tls_(tls), acceptor_(io_), at_(boost::asio::ip::make_address(host), 0) {
    Listen();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Receiver() {
    Kill();
    work_.reset();
    io_.stop();
    thread_.join();
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  uint16_t port() const { return at_.port(); }
  void Kill() {
    OnThread([this] {
      acceptor_.close();
      held_.clear();
      silent_.clear();
      for (const auto& weak : sessions_) {
        if (const auto session = weak.lock()) session->Reset();
      }
      sessions_.clear();
    });
  }
  void Start() {
    OnThread([this] { Listen(); });
  }
  void Answer(Handler handler) {
    OnThread([&] { handler_ = std::move(handler); });
  }
  void Answer(const Reply& reply) {
    Answer([reply](const Received&) { return reply; });
  }
  /// From now on what a new connection is told as soon as it is there, before anything was read.
  void Greet(const std::string& bytes) {
    OnThread([&] { greeting_ = bytes; });
  }
  void Hang() {
    OnThread([this] { hung_ = true; });
  }
  void Resume() {
    OnThread([this] {
      hung_ = false;
      for (const auto& answer : std::exchange(held_, {})) answer();
    });
  }
  /// Without being asked, to every connection.
  void Blurt(const std::string& bytes) {
    OnThread([&] {
      for (const auto& weak : sessions_) {
        if (const auto session = weak.lock()) session->Say(bytes);
      }
    });
  }

  std::vector<Received> received() const {
    const std::lock_guard lock(mutex_);
    return received_;
  }
  int connections() const { return connections_; }
  /// Closed by the other side.
  int hung_up() const { return hung_up_; }

 private:
  struct Session {
    virtual ~Session() = default;
    virtual void Reset() = 0;
    virtual void Say(const std::string& bytes) = 0;
  };
  using Error = boost::system::error_code;

  template <class Stream>
  class SessionOn final : public Session, public std::enable_shared_from_this<SessionOn<Stream>> {
   public:
    template <class... Args>
    SessionOn(Receiver& receiver, int number, Args&&... args)
        : receiver_(receiver), number_(number), stream_(std::forward<Args>(args)...) {}

    void Begin() {
      if constexpr (requires { stream_.next_layer(); }) {
        stream_.async_handshake(boost::asio::ssl::stream_base::server,
                                [self = this->shared_from_this()](const Error& error) {
                                  if (!error) self->Greet();
                                });
      } else {
        Greet();
      }
    }
    void Reset() override {
      Error ignored;
      auto& socket = stream_.lowest_layer();
      socket.set_option(boost::asio::socket_base::linger(true, 0), ignored);
      socket.close(ignored);
    }
    void Say(const std::string& bytes) override {
      Error ignored;
      boost::asio::write(stream_, boost::asio::buffer(bytes), ignored);
    }

   private:
    void Greet() {
      if (!receiver_.greeting_.empty()) Say(receiver_.greeting_);
      Read();
    }
    void Read() {
      parser_.emplace();
      parser_->body_limit(64 << 20);
      boost::beast::http::async_read(stream_, buffer_, *parser_,
                                     [self = this->shared_from_this()](const Error& error, size_t /*bytes*/) {
                                       if (error) ++self->receiver_.hung_up_;
                                       if (!error) self->Arrived();
                                     });
    }
    void Arrived() {
      if (!receiver_.hung_) return Answer();
      receiver_.held_.push_back([self = this->shared_from_this()] { self->Answer(); });
    }
    void Answer() {
      const auto& message = parser_->get();
      Received received{.connection = number_, .target = message.target(), .fields = {}, .body = message.body()};
      for (const auto& field : message) {
        std::string name(field.name_string());
        for (char& c : name) c = static_cast<char>(std::tolower(c));
        received.fields[name] += std::string(field.value());
      }
      const Reply reply = receiver_.Take(std::move(received));
      if (reply.silent && !reply.close) return receiver_.silent_.push_back(this->shared_from_this());
      out_ = reply.raw;
      if (out_.empty() && !reply.silent) {
        out_ = fmt::format("HTTP/1.1 {} Said So\r\ncontent-length: {}\r\n{}\r\n{}", reply.status, reply.body.size(),
                           reply.fields, reply.body);
      }
      boost::asio::async_write(stream_, boost::asio::buffer(out_),
                               [self = this->shared_from_this(), close = reply.close](const Error& error, size_t) {
                                 Error ignored;
                                 if (error || close) self->stream_.lowest_layer().close(ignored);
                                 if (!error && !close) self->Read();
                               });
    }

    Receiver& receiver_;
    const int number_;
    Stream stream_;
    boost::beast::flat_buffer buffer_;
    std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
    std::string out_;
  };

  template <class F>
  void OnThread(F task) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  void Listen() {
    acceptor_.open(at_.protocol());
    acceptor_.set_option(boost::asio::socket_base::reuse_address(true));
    acceptor_.bind(at_);
    acceptor_.listen();
    at_ = acceptor_.local_endpoint();
    Accept();
  }
  void Accept() {
    acceptor_.async_accept([this](const Error& error, Tcp::socket socket) {
      if (error) return;
      const int number = ++connections_;
      if (tls_ != nullptr) {
        Add(std::make_shared<SessionOn<boost::asio::ssl::stream<Tcp::socket>>>(*this, number, std::move(socket),
                                                                               *tls_));
      } else {
        Add(std::make_shared<SessionOn<Tcp::socket>>(*this, number, std::move(socket)));
      }
      Accept();
    });
  }
  template <class Made>
  void Add(const std::shared_ptr<Made>& session) {
    sessions_.push_back(session);
    session->Begin();
  }
  Reply Take(Received received) {
    const Reply reply = handler_(received);
    const std::lock_guard lock(mutex_);
    received_.push_back(std::move(received));
    return reply;
  }

  Handler handler_;
  boost::asio::ssl::context* const tls_;
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  Tcp::acceptor acceptor_;
  Tcp::endpoint at_;
  bool hung_ = false;
  std::string greeting_;
  std::vector<std::function<void()>> held_;
  std::vector<std::shared_ptr<Session>> silent_;  // they stay open
  std::vector<std::weak_ptr<Session>> sessions_;
  std::atomic<int> connections_ = 0;
  std::atomic<int> hung_up_ = 0;
  mutable std::mutex mutex_;  // protects the next one
  std::vector<Received> received_;
  std::thread thread_;
};

}  // namespace tocsin::webhook
