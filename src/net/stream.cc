#include "net/stream.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>
#include <netinet/tcp.h>

#include "net/turns.h"

namespace tocsin::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Notices within half a minute that a peer vanished, even if nothing is sent.
constexpr int kKeepAliveIdleSeconds = 15;
constexpr int kKeepAliveIntervalSeconds = 5;
constexpr int kKeepAliveProbes = 3;

Status Loaded(const error_code& error, std::string_view field, const std::string& file) {
  if (!error) return {};
  return FailField(Code::kInvalidArgument, std::string(field), "{} cannot be used: {}", file, error.message());
}

}  // namespace

Result<std::unique_ptr<asio::ssl::context>> MakeTlsContext(const Tls& tls) {
  if (!tls.on) return nullptr;
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                       asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
  error_code error;
  context->set_verify_mode(tls.verify ? asio::ssl::verify_peer : asio::ssl::verify_none, error);
  if (tls.ca_file.empty()) {
    context->set_default_verify_paths(error);
    TOCSIN_TRY(Loaded(error, "tls.ca_file", "the system's certificates"));
  } else {
    context->load_verify_file(tls.ca_file, error);
    TOCSIN_TRY(Loaded(error, "tls.ca_file", tls.ca_file));
  }
  if (!tls.cert_file.empty()) {
    context->use_certificate_chain_file(tls.cert_file, error);
    TOCSIN_TRY(Loaded(error, "tls.cert_file", tls.cert_file));
    context->use_private_key_file(tls.key_file, asio::ssl::context::pem, error);
    TOCSIN_TRY(Loaded(error, "tls.key_file", tls.key_file));
  }
  return context;
}

Stream::Stream(asio::io_context& io, asio::ssl::context* tls) : resolver_(io), socket_(io) {
  if (tls != nullptr) tls_.emplace(socket_, *tls);
}

void Stream::Connect(std::string host, uint16_t port, bool verify_name, Done done) {
  host_ = std::move(host);
  verify_name_ = verify_name;
  const std::string service = std::to_string(port);
  error_code not_an_address;
  const auto ip = asio::ip::make_address(host_, not_an_address);
  if (!not_an_address) {
    // Not through the resolver, whose only thread may be busy with names.
    return ConnectTo(Tcp::resolver::results_type::create(Tcp::endpoint(ip, port), host_, service), std::move(done));
  }
  resolver_.async_resolve(
      host_, service, asio::ip::resolver_base::numeric_service,
      [this, done = std::move(done)](const error_code& error, const Tcp::resolver::results_type& addresses) mutable {
        const Turn turn;
        if (error) return done(error);
        ConnectTo(addresses, std::move(done));
      });
}

void Stream::ConnectTo(const Tcp::resolver::results_type& addresses, Done done) {
  if (closed_) return done(asio::error::operation_aborted);
  asio::async_connect(socket_, addresses,
                      [this, done = std::move(done)](const error_code& error, const Tcp::endpoint&) mutable {
                        const Turn turn;
                        if (error) return done(error);
                        Connected(std::move(done));
                      });
}

void Stream::Connected(Done done) {
  if (closed_) return done(asio::error::operation_aborted);
  const error_code error = Prepare();
  if (error || !tls_) return done(error);
  tls_->async_handshake(asio::ssl::stream_base::client, AsTurn(std::move(done)));
}

error_code Stream::Prepare() {
  error_code error;
  socket_.set_option(Tcp::no_delay(true), error);
  if (!error) socket_.set_option(asio::socket_base::keep_alive(true), error);
  const int handle = socket_.native_handle();
  const auto set = [handle](int name, int value) { setsockopt(handle, IPPROTO_TCP, name, &value, sizeof(value)); };
  set(TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set(TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  set(TCP_KEEPCNT, kKeepAliveProbes);
  if (error || !tls_) return error;

  error_code not_an_address;
  asio::ip::make_address(host_, not_an_address);
  // SNI is for names alone (RFC 6066).
  if (not_an_address && SSL_set_tlsext_host_name(tls_->native_handle(), host_.c_str()) != 1) {
    return asio::error::invalid_argument;
  }
  if (verify_name_) tls_->set_verify_callback(asio::ssl::host_name_verification(host_), error);
  return error;
}

void Stream::Read(asio::mutable_buffer into, Moved moved) {
  auto handler = AsTurn(std::move(moved));
  tls_ ? tls_->async_read_some(into, std::move(handler)) : socket_.async_read_some(into, std::move(handler));
}

void Stream::Write(asio::const_buffer bytes, Moved moved) {
  auto handler = AsTurn(std::move(moved));
  tls_ ? asio::async_write(*tls_, bytes, std::move(handler)) : asio::async_write(socket_, bytes, std::move(handler));
}

void Stream::Close() {
  closed_ = true;
  resolver_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace tocsin::net
