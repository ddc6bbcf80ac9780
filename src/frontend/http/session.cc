#include "frontend/http/session.h"

#include <boost/beast/http/error.hpp>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "frontend/http/decode.h"
#include "frontend/http/gzip.h"
#include "frontend/http/header_check.h"
#include "frontend/http/server.h"
#include "frontend/http/text.h"

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
constexpr Millis kBodyTime{60'000};   // for the first kMovedBytes, and again for the next
constexpr Millis kWriteTime{60'000};  // the same
constexpr size_t kMovedBytes = 64 << 10;
constexpr Millis kLingerTime{2'000};
constexpr std::string_view kVary = "Vary: Accept-Encoding\r\n";
constexpr std::string_view kGzipped = "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view View(const beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

}  // namespace

Session::Session(Server& server, net::Socket socket, net::ConnectionPass pass)
    : server_(server),
      socket_(std::move(socket)),
      pass_(std::move(pass)),
      request_charge_(server.budget(), Charge::For::kRequest),
      json_(MakeParser()),
      answer_charge_(server.budget(), Charge::For::kAnswer) {}

void Session::Start() { Next(); }

void Session::Enter(Phase phase, Millis deadline) {
  phase_ = phase;
  deadline_ = server_.loop().clock().IoNow() + deadline;
  moved_ = 0;
}

void Session::Moved(size_t bytes, Millis deadline) {
  moved_ += bytes;
  if (moved_ >= kMovedBytes) Enter(phase_, deadline);
}

void Session::TimeOut() {
  if (phase_ == Phase::kHeader) {
    return Refuse({Code::kTimedOut,
                   fmt::format("the request header did not arrive within {} s", kHeaderTime.count() / 1000),
                   {}});
  }
  if (phase_ == Phase::kBody) {
    return Refuse({Code::kTimedOut,
                   fmt::format("the rest of the body, or the next {} bytes of it, did not arrive within {} s",
                               kMovedBytes, kBodyTime.count() / 1000),
                   {}});
  }
  Close();
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
  scanned_ = 0;
  if (server_.draining()) return Close();
  if (buffer_.size() == 0 && buffer_.capacity() > kBodyChunk) buffer_.shrink_to_fit();
  Enter(Phase::kIdle, kIdleTime);
  Advance();
}

void Session::Read() {
  if (reading_) return;
  if (gone_) return Close();
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
  if (error) return OnReadError(error);
  if (phase_ == Phase::kLingering) return Read();  // prepare() gives the same bytes again
  buffer_.commit(bytes);
  if (phase_ == Phase::kBody) Moved(bytes, kBodyTime);
  Advance();
}

void Session::OnReadError(const error_code& error) {
  gone_ = true;
  const bool answering = phase_ == Phase::kHandling || phase_ == Phase::kWriting;
  if (error != boost::asio::error::eof || parked_ || !answering) Close();
}

void Session::Advance() {
  // Some clients send an empty line behind a body; it is no request (RFC 9112, 2.2).
  while (phase_ == Phase::kIdle && View(buffer_).starts_with("\r\n")) buffer_.consume(2);
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
  const Status status = CheckHeader(bytes.substr(0, end + 2), server_.pages());
  if (!status) return Refuse(status.error());

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
  // Strangers' bodies are not even read; what is here already is checked when it is dispatched.
  const bool more = !request_->is_done() && request_->content_length().value_or(SIZE_MAX) > buffer_.size();
  if (more && server_.tokens() != nullptr) {
    if (const Status allowed = CheckCaller(); !allowed) return Refuse(allowed.error());
  }
  if (!request_charge_.Reach(request_->content_length().value_or(0))) return Refuse(server_.NoRoom());
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
    // The length of a chunked body is known only as it comes.
    if (request_->chunked() && !request_charge_.Reach(request_->get().body().size() + buffer_.size())) {
      return Refuse(server_.NoRoom());
    }
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
  const std::string_view target = PathOf({message.target().data(), message.target().size()});
  auto match = server_.router().Find(head_ ? Verb::get : message.method(), target, &refused.allow);
  if (!match) {
    route_ = server_.router().routes().size();
    Response response = ErrorResponse(match.error());
    response.allow = std::move(refused.allow);
    return Send(std::move(response));
  }
  route_ = static_cast<size_t>(match->route - server_.router().routes().data());
  const auto tokens = server_.tokens();  // kept until the handler returns, whatever happens to the server's
  const auto grant = GrantFor(*match);
  if (!grant) return Send(ErrorResponse(grant.error()));
  Call call{.context = server_.context(),
            .loop = server_.loop(),
            .parser = json_,
            .params = std::move(match->params),
            .query = std::move(match->query),
            .body = message.body(),
            .grant = *grant,
            .answer = Answer(shared_from_this()),
            .session = *this};
  match->route->handler(call);
}

Result<const auth::Grant*> Session::GrantFor(const Match& match) const {
  const auto authorization = request_->get()[beast::http::field::authorization];
  const bool has_topic = !match.params.empty();
  return CheckAccess(server_.tokens().get(), match.route->access, {authorization.data(), authorization.size()},
                     has_topic ? std::string_view(match.params[0]) : std::string_view());
}

Status Session::CheckCaller() const {
  const auto& message = request_->get();
  const std::string_view target = PathOf({message.target().data(), message.target().size()});
  const auto match = server_.router().Find(message.method(), target);
  if (!match) return {};  // nothing to protect
  TOCSIN_TRY(GrantFor(*match));
  return {};
}

void Session::TokensChanged() {
  if (parked_ && !CheckCaller()) server_.context().service.CancelReserve(*parked_);
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
  if (error) return OnReadError(error);
  if (phase_ == Phase::kLingering) return Read();
  std::memcpy(buffer_.prepare(bytes).data(), watched_.data(), bytes);
  buffer_.commit(bytes);
  if (parked_) return Watch();
  if (phase_ < Phase::kHandling) Advance();
}

void Session::Refuse(const Error& error) {
  request_.reset();
  request_charge_.Clear();
  keep_alive_ = false;
  unread_ = true;
  head_ = false;
  route_ = server_.router().routes().size();
  began_ = server_.loop().clock().IoNow();
  Send(ErrorResponse(error));
}

Status Session::MakeRoom(size_t bytes) {
  if (!answer_charge_.Reach(bytes)) return std::unexpected(server_.NoRoom());
  return {};
}

void Session::Send(Response response) {
  if (phase_ == Phase::kClosed) return;
  Unpark();
  const bool packable = response.body.size() >= kGzipBytesMin && request_;
  if (!packable) return SendAs(std::move(response), {});
  if (!WantsGzip()) return SendAs(std::move(response), kVary);
  if (response.body.size() > kGzipBytesAtOnce) return Pack(std::move(response));
  std::string packed = server_.gzip().Compress(response.body);
  if (packed.empty()) return SendAs(std::move(response), kVary);
  response.body = std::move(packed);
  SendAs(std::move(response), kGzipped);
}

bool Session::WantsGzip() const {
  if (head_) return false;
  const auto accepted = request_->get()[beast::http::field::accept_encoding];
  return AcceptsGzip({accepted.data(), accepted.size()});
}

void Session::Pack(Response response) {
  if (!answer_charge_.Reach(response.body.size() + kPackingBytes)) return SendAs(std::move(response), kVary);
  packing_ = std::make_unique<Packing>(std::move(response.body));
  PackNext(std::move(response));
}

void Session::PackNext(Response response) {
  if (phase_ == Phase::kClosed) return packing_.reset();
  if (!packing_->Step()) {
    return server_.loop().Post(
        [self = shared_from_this(), response = std::move(response)]() mutable { self->PackNext(std::move(response)); });
  }
  const auto packing = std::move(packing_);
  response.body = packing->TakePacked();
  if (!response.body.empty()) return SendAs(std::move(response), kGzipped);
  response.body = packing->TakeBody();
  SendAs(std::move(response), kVary);
}

void Session::SendAs(Response response, std::string_view encoding) {
  if (!answer_charge_.Reach(response.body.size())) {
    response = ErrorResponse(server_.NoRoom());  // small: no charge is needed
    encoding = {};
  }
  server_.Record(route_, response.status, server_.loop().clock().IoNow() - began_);
  if (server_.draining()) keep_alive_ = false;
  MakeHead(response, encoding);
  out_body_ = head_ ? std::string() : std::move(response.body);
  out_sent_ = 0;
  Enter(Phase::kWriting, kWriteTime);
  Write();
}

void Session::MakeHead(const Response& response, std::string_view encoding) {
  out_head_ = "HTTP/1.1 ";
  AppendInteger(out_head_, response.status);
  out_head_ += ' ';
  out_head_ += std::string_view(beast::http::obsolete_reason(static_cast<beast::http::status>(response.status)));
  out_head_ += "\r\nContent-Type: ";
  out_head_ += response.content_type;
  out_head_ += "\r\nContent-Length: ";
  AppendInteger(out_head_, static_cast<int64_t>(response.body.size()));
  out_head_ += "\r\n";
  out_head_ += encoding;
  if (!response.allow.empty()) fmt::format_to(std::back_inserter(out_head_), "Allow: {}\r\n", response.allow);
  if (response.status == 401) out_head_ += "WWW-Authenticate: Bearer\r\n";
  if (!keep_alive_) {
    out_head_ += "Connection: close\r\n";
  } else if (request_->get().version() < 11) {
    out_head_ += "Connection: keep-alive\r\n";
  }
  out_head_ += "\r\n";
}

void Session::Write() {
  const size_t head_left = out_head_.size() - std::min(out_sent_, out_head_.size());
  const std::array<boost::asio::const_buffer, 2> out = {buffer(out_head_) + out_sent_,
                                                        buffer(out_body_) + (out_sent_ + head_left - out_head_.size())};
  socket_.async_write_some(
      out, [self = shared_from_this()](const error_code& error, size_t bytes) { self->OnWritten(error, bytes); });
}

void Session::OnWritten(const error_code& error, size_t bytes) {
  if (phase_ == Phase::kClosed) return;
  if (error) return Close();
  out_sent_ += bytes;
  if (out_sent_ < out_head_.size() + out_body_.size()) {
    Moved(bytes, kWriteTime);
    return Write();
  }
  out_body_ = {};
  answer_charge_.Clear();
  request_.reset();
  request_charge_.Clear();
  if (keep_alive_) return Next();
  if (!unread_ && buffer_.size() == 0) return Close();
  Linger();
}

void Session::Linger() {
  // Closing with unread bytes would send a reset, which may overtake the answer.
  error_code ignored;
  socket_.shutdown(net::Socket::shutdown_send, ignored);
  Enter(Phase::kLingering, kLingerTime);
  buffer_.clear();
  Read();
}

}  // namespace tocsin::http
