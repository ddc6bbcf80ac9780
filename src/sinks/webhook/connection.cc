#include "sinks/webhook/connection.h"

#include <algorithm>

#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/turns.h"
#include "sinks/webhook/batch.h"
#include "sinks/webhook/sink.h"

namespace tocsin::webhook {
namespace {

namespace asio = boost::asio;

constexpr size_t kAnswerBytesMax = 64 << 10;  // of a body that nobody reads; if it is longer, the connection is closed

AnswerReader::Bounds BoundsOf(const Request& request) {
  if (!request.batched) return {.body_bytes = kAnswerBytesMax};
  return {.body_bytes = OutcomesBytesMax(request.items.size()), .keep_body = true};
}

/// The certificate has to be the host's. SNI is only for names (RFC 6066).
bool ExpectHost(SSL* ssl, const Target& target) {
  if (target.address) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), target.host.c_str()) == 1;
  return SSL_set1_host(ssl, target.host.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, target.host.c_str()) == 1;
}

}  // namespace

Connection::Connection(Route& route, WebhookSink& sink, net::Places::Place socket_place)
    : route_(route), sink_(sink), socket_place_(std::move(socket_place)), socket_(route.loop.io()) {
  if (route.target.tls) tls_.emplace(socket_, *route.tls);
}

void Connection::Send(std::shared_ptr<const Request> request) {
  request_ = std::move(request);
  busy_ = true;
  reader_.Begin(BoundsOf(*request_));
  if (stage_ == Stage::kNew) return Open();
  Write();
}

void Connection::Open() {
  stage_ = Stage::kLookup;
  lookup_by_ = route_.loop.clock().IoNow() + route_.lookup.times().deadline;
  auto found = [self = shared_from_this()](const Result<Addresses>& addresses) { self->Found(addresses); };
  const Target& target = route_.target;
  if (!target.address) return route_.lookup.Ask(target.host, route_.loop, std::move(found));
  asio::post(route_.loop.io(), [found, address = *target.address] { found(Addresses{address}); });
}

void Connection::Found(const Result<Addresses>& found) {
  const net::Turn turn;
  if (closed_) return;
  if (!found) return Fail(found.error().message);
  std::string_view refused = "a name without an address";
  for (const asio::ip::address& address : *found) {
    if (const auto why = WhyRefused(address, route_.allow)) {
      refused = *why;
    } else {
      endpoints_.emplace_back(address, route_.target.port);
    }
  }
  if (endpoints_.empty()) {
    // Do not say which address: it would tell whoever may set a topic about the inside of a network.
    return Fail(fmt::format("the host is {}, and the server's option webhook.allow does not name it", refused));
  }
  const auto first = static_cast<ptrdiff_t>(route_.first_address % endpoints_.size());
  std::rotate(endpoints_.begin(), endpoints_.begin() + first, endpoints_.end());
  stage_ = Stage::kConnect;
  asio::async_connect(socket_, endpoints_, [self = shared_from_this()](const ErrorCode& error, const Tcp::endpoint&) {
    self->Connected(error);
  });
}

void Connection::Connected(const ErrorCode& error) {
  const net::Turn turn;
  if (closed_) return;
  if (error == asio::error::operation_aborted && NoFileIsLeft()) {
    busy_ = false;
    return sink_.OnEnded(*this, {.answer = {}, .error = "the server has no open file left", .no_file = true});
  }
  if (error) return Fail(fmt::format("no connection: {}", error.message()));
  ErrorCode ignored;
  socket_.set_option(Tcp::no_delay(true), ignored);
  if (!tls_) return Begin();
  stage_ = Stage::kHandshake;
  if (!ExpectHost(tls_->native_handle(), route_.target)) return Fail("OpenSSL refuses the name of the host");
  tls_->async_handshake(asio::ssl::stream_base::client,
                        [self = shared_from_this()](const ErrorCode& error) { self->HandshakeDone(error); });
}

/// Asio says only that the connect was aborted if the system gave it no socket.
bool Connection::NoFileIsLeft() {
  ErrorCode error;
  socket_.open(endpoints_.front().protocol(), error);
  return error == boost::system::errc::too_many_files_open ||
         error == boost::system::errc::too_many_files_open_in_system;
}

void Connection::HandshakeDone(const ErrorCode& error) {
  const net::Turn turn;
  if (closed_) return;
  if (!error) return Begin();
  const long verified = SSL_get_verify_result(tls_->native_handle());
  if (verified == X509_V_OK) return Fail(fmt::format("the TLS handshake failed: {}", error.message()));
  Fail(fmt::format("its certificate is not accepted: {}", X509_verify_cert_error_string(verified)));
}

void Connection::Begin() {
  stage_ = Stage::kReady;
  Write();
  Read();
}

void Connection::Write() {
  writing_ = true;
  const std::array<asio::const_buffer, 2> bytes = {asio::buffer(request_->head), asio::buffer(request_->body())};
  // The request lives until the write is over, also if the answer comes before that.
  auto written = [self = shared_from_this(), request = request_](const ErrorCode& error, size_t /*bytes*/) {
    // A receiver may answer before it has read all, and close. That answer counts, so leave errors to the read.
    if (!error) self->writing_ = false;
  };
  tls_ ? asio::async_write(*tls_, bytes, std::move(written)) : asio::async_write(socket_, bytes, std::move(written));
}

void Connection::Read() {
  reading_ = true;
  auto read = [self = shared_from_this()](const ErrorCode& error, size_t bytes) { self->OnRead(error, bytes); };
  const auto into = asio::buffer(buffer_);
  tls_ ? tls_->async_read_some(into, std::move(read)) : socket_.async_read_some(into, std::move(read));
}

void Connection::OnRead(const ErrorCode& error, size_t bytes) {
  const net::Turn turn;
  if (closed_) return;
  reading_ = false;
  if (!busy_) return sink_.OnLost(*this);
  if (!error) return Proceed(reader_.Feed({buffer_.data(), bytes}), {});
  const bool clean = error == asio::error::eof;
  Proceed(reader_.End(clean), clean ? "" : fmt::format("the connection was lost: {}", error.message()));
}

void Connection::Proceed(AnswerReader::State state, std::string_view lost) {
  if (state == AnswerReader::State::kMore) return Read();
  if (state == AnswerReader::State::kDone) return Finish();
  if (!lost.empty()) return Fail(lost);
  if (!reader_.started()) return Fail(reader_.error());
  Fail(fmt::format("its answer is not HTTP/1.1: {}", reader_.error()));
}

void Connection::Finish() {
  busy_ = false;
  served_ = true;
  Ending ending{.answer = reader_.TakeAnswer()};
  ending.reusable = ending.answer->keep_alive && !writing_;
  if (ending.reusable && !reading_) Read();
  sink_.OnEnded(*this, ending);
}

void Connection::Fail(std::string_view why) {
  if (stage_ == Stage::kConnect || stage_ == Stage::kHandshake) {
    ++route_.first_address;
    if (!route_.target.address) route_.lookup.Doubt(route_.target.host);
  }
  busy_ = false;
  sink_.OnEnded(*this, {.answer = {},
                        .error = fmt::format("{}: {}", route_.target.Text(), why),
                        .unsent = stage_ != Stage::kReady,
                        .stale = served_ && !reader_.started()});
}

void Connection::Expire() {
  constexpr std::string_view kMissing[] = {"", "no address for the name", "no connection",
                                           "no end of the TLS handshake", "no answer"};
  Abandon(fmt::format("{} in time", kMissing[static_cast<size_t>(stage_)]));
}

void Connection::Abandon(std::string_view why) {
  if (stage_ == Stage::kReady && reader_.End(false) == AnswerReader::State::kDone) return Finish();
  served_ = false;  // so that the request is not sent again
  Fail(why);
}

void Connection::Close() {
  closed_ = true;
  ErrorCode ignored;
  socket_.close(ignored);
  const net::Places::Place free = std::move(socket_place_);
}

}  // namespace tocsin::webhook
