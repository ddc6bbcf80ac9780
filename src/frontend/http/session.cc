#include "frontend/http/session.h"

#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "frontend/http/decode.h"
#include "frontend/http/header_check.h"
#include "frontend/http/server.h"

namespace tocsin::http {
namespace {

namespace beast = boost::beast;
using boost::asio::buffer;
using boost::system::error_code;

constexpr uint32_t kHeaderMax = 16 << 10;
constexpr size_t kReadChunk = 16 << 10;
constexpr size_t kBodyChunk = 64 << 10;
constexpr size_t kBufferedMax = 128 << 10;  // of pipelined requests and of chunk headers
constexpr Millis kHeaderTime{10'000};
constexpr Millis kIdleTime{60'000};
constexpr Millis kBodyTime{60'000};
constexpr Millis kWriteTime{60'000};
constexpr Millis kLingerTime{2'000};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view View(const beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

}  // namespace

Session::Session(Server& server, net::Socket socket, net::ConnectionPass pass)
    : server_(server), socket_(std::move(socket)), pass_(std::move(pass)), json_(MakeParser()) {}

void Session::Start() { Next(); }

void Session::Enter(Phase phase, Millis deadline) {
  phase_ = phase;
  deadline_ = server_.loop().clock().IoNow() + deadline;
}

void Session::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  if (const auto parked = Unpark()) server_.context().service.CancelReserve(*parked);
  error_code ignored;
  socket_.close(ignored);
  pass_.reset();
  server_.Remove(*this);
}

void Session::Drain() {
  if (phase_ < Phase::kHandling) Close();
}

void Session::Next() {
  request_.reset();
  scanned_ = 0;
  if (gone_ || server_.draining()) return Close();
  if (buffer_.size() == 0 && buffer_.capacity() > kBodyChunk) buffer_.shrink_to_fit();
  Enter(Phase::kIdle, kIdleTime);
  Advance();
}

void Session::Read() {
  if (reading_) return;
  if (buffer_.size() >= kBufferedMax) {
    return Refuse({Code::kTooLarge, fmt::format("a part of the request is over {} bytes", kBufferedMax), {}});
  }
  size_t chunk = kReadChunk;
  if (phase_ == Phase::kBody) {
    chunk = std::clamp<size_t>(request_->content_length_remaining().value_or(kReadChunk), kReadChunk, kBodyChunk);
  }
  reading_ = true;
  socket_.async_read_some(buffer_.prepare(chunk), [self = shared_from_this()](const error_code& error, size_t bytes) {
    self->OnRead(error, bytes);
  });
}

void Session::OnRead(const error_code& error, size_t bytes) {
  reading_ = false;
  if (phase_ == Phase::kClosed) return;
  if (error) return Close();
  if (phase_ == Phase::kLingering) return Read();  // prepare() gives the same bytes again
  buffer_.commit(bytes);
  Advance();
}

void Session::Advance() {
  if (phase_ == Phase::kIdle && buffer_.size() > 0) Enter(Phase::kHeader, kHeaderTime);
  if (phase_ == Phase::kHeader) TakeHeader();
  if (phase_ == Phase::kBody) TakeBody();
  if (phase_ < Phase::kHandling) Read();
}

void Session::TakeHeader() {
  const std::string_view bytes = View(buffer_);
  const size_t end = bytes.find("\r\n\r\n", scanned_);
  if (std::min(end, bytes.size()) + 4 > kHeaderMax) {
    return Refuse({Code::kTooLarge, fmt::format("the request header is over {} bytes", kHeaderMax), {}});
  }
  if (end == std::string_view::npos) {
    scanned_ = bytes.size() < 3 ? 0 : bytes.size() - 3;
    return;
  }
  if (const Status status = CheckHeader(bytes.substr(0, end + 2)); !status) return Refuse(status.error());

  request_.emplace();
  request_->header_limit(kHeaderMax);
  request_->body_limit(server_.options().body_bytes_max);
  error_code error;
  const size_t used = request_->put(buffer(bytes.data(), end + 4), error);
  if (error == beast::http::error::body_limit) {
    return Refuse({Code::kTooLarge,
                   fmt::format("the body is over limits.body_size, {} bytes", server_.options().body_bytes_max),
                   {}});
  }
  if (error) return Refuse({Code::kInvalidArgument, fmt::format("malformed request: {}", error.message()), {}});
  buffer_.consume(used);
  request_->eager(true);
  Enter(Phase::kBody, kBodyTime);
  if (request_->is_done() || buffer_.size() > 0) return;
  AckNow();
  if (request_->get().count(beast::http::field::expect) > 0) Continue();
}

void Session::AckNow() {
  // Many clients send header and body apart, without TCP_NODELAY: their body waits for the acknowledgement of the
  // header, which the kernel would hold back for 40 ms.
  const int on = 1;
  setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

void Session::TakeBody() {
  while (!request_->is_done() && buffer_.size() > 0) {
    error_code error;
    buffer_.consume(request_->put(buffer_.data(), error));
    if (error == beast::http::error::need_more) break;
    if (error == beast::http::error::body_limit) {
      return Refuse({Code::kTooLarge,
                     fmt::format("the body is over limits.body_size, {} bytes", server_.options().body_bytes_max),
                     {}});
    }
    if (error) return Refuse({Code::kInvalidArgument, fmt::format("malformed request: {}", error.message()), {}});
  }
  if (request_->is_done()) Dispatch();
}

void Session::Continue() {
  // The client waits for these few bytes before it sends more, so they fit into the socket's buffer.
  error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.write_some(buffer(kContinue), ignored);
}

void Session::Dispatch() {
  phase_ = Phase::kHandling;
  deadline_ = std::chrono::steady_clock::time_point::max();
  began_ = server_.loop().clock().IoNow();
  const auto& message = request_->get();
  keep_alive_ = message.keep_alive();
  head_ = message.method() == Verb::head;
  Response refused;
  const std::string_view target(message.target().data(), message.target().size());
  auto match = server_.router().Find(message.method(), target, &refused.allow);
  if (!match) {
    route_ = server_.router().routes().size();
    Response response = ErrorResponse(match.error());
    response.allow = std::move(refused.allow);
    return Send(std::move(response));
  }
  route_ = static_cast<size_t>(match->route - server_.router().routes().data());
  Call call{.context = server_.context(),
            .loop = server_.loop(),
            .parser = json_,
            .params = std::move(match->params),
            .query = std::move(match->query),
            .body = message.body(),
            .answer = Answer(shared_from_this()),
            .session = *this};
  match->route->handler(call);
}

void Session::Park(ReserveId id) {
  if (phase_ != Phase::kHandling) return;  // it was answered at once
  parked_ = id;
  server_.CountParked(1);
  Watch();
}

std::optional<ReserveId> Session::Unpark() {
  if (parked_) server_.CountParked(-1);
  return std::exchange(parked_, std::nullopt);
}

void Session::Watch() {
  if (reading_ || buffer_.size() >= kBufferedMax) return;
  reading_ = true;
  socket_.async_read_some(buffer(watched_), [self = shared_from_this()](const error_code& error, size_t bytes) {
    self->OnWatch(error, bytes);
  });
}

void Session::OnWatch(const error_code& error, size_t bytes) {
  reading_ = false;
  if (phase_ == Phase::kClosed) return;
  if (error) {
    gone_ = true;
    // Nobody waits for what is parked or half sent. Any other answer may still be read: a client may close only the
    // side that it sends on.
    if (parked_ || phase_ < Phase::kHandling) Close();
    return;
  }
  std::memcpy(buffer_.prepare(bytes).data(), watched_.data(), bytes);
  buffer_.commit(bytes);
  if (parked_) return Watch();
  if (phase_ < Phase::kHandling) Advance();
}

void Session::Refuse(const Error& error) {
  keep_alive_ = false;
  unread_ = true;
  head_ = false;
  route_ = server_.router().routes().size();
  began_ = server_.loop().clock().IoNow();
  Send(ErrorResponse(error));
}

void Session::Send(Response response) {
  if (phase_ == Phase::kClosed) return;
  Unpark();
  server_.Record(route_, response.status, server_.loop().clock().IoNow() - began_);
  if (server_.draining()) keep_alive_ = false;
  const std::string_view reason = beast::http::obsolete_reason(static_cast<beast::http::status>(response.status));
  out_head_.clear();
  fmt::format_to(std::back_inserter(out_head_), "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                 response.status, reason, response.content_type, response.body.size());
  if (!response.allow.empty()) fmt::format_to(std::back_inserter(out_head_), "Allow: {}\r\n", response.allow);
  if (!keep_alive_) {
    out_head_ += "Connection: close\r\n";
  } else if (request_->get().version() < 11) {
    out_head_ += "Connection: keep-alive\r\n";
  }
  out_head_ += "\r\n";
  out_body_ = head_ ? std::string() : std::move(response.body);
  Write();
}

void Session::Write() {
  Enter(Phase::kWriting, kWriteTime);
  const std::array<boost::asio::const_buffer, 2> out = {buffer(out_head_), buffer(out_body_)};
  boost::asio::async_write(socket_, out,
                           [self = shared_from_this()](const error_code& error, size_t) { self->OnWritten(error); });
}

void Session::OnWritten(const error_code& error) {
  if (phase_ == Phase::kClosed) return;
  if (error) return Close();
  out_body_ = {};
  if (keep_alive_) return Next();
  if (!unread_ && buffer_.size() == 0) return Close();
  // Closing with unread bytes would send a reset, which may overtake the answer.
  error_code ignored;
  socket_.shutdown(net::Socket::shutdown_send, ignored);
  Enter(Phase::kLingering, kLingerTime);
  buffer_.clear();
  Read();
}

}  // namespace tocsin::http
