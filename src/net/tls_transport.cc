#include "net/tls_transport.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <boost/asio/error.hpp>
#include <openssl/err.h>
#include <openssl/x509.h>

namespace tocsin::net {
namespace {

using boost::system::error_code;
namespace asio = boost::asio;

constexpr size_t kRecordMax = 16 << 10;  // bytes that a record carries

/// As RFC 2253 says, but with the letters of all languages as they are.
std::string TextOf(const X509_NAME* name) {
  const std::unique_ptr<BIO, int (*)(BIO*)> text(BIO_new(BIO_s_mem()), BIO_free);
  if (!text) throw std::bad_alloc();
  constexpr auto kFlags = XN_FLAG_RFC2253 & ~static_cast<unsigned long>(ASN1_STRFLGS_ESC_MSB);
  if (X509_NAME_print_ex(text.get(), name, 0, kFlags) < 0) return {};
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(text.get(), &bytes);
  return {bytes, static_cast<size_t>(std::max(size, 0L))};
}

}  // namespace

TlsTransport::TlsTransport(std::shared_ptr<const ServerTls> tls, int socket, Budget& budget)
    : tls_(std::move(tls)), ssl_(SSL_new(tls_->context())), charge_(budget, Charge::For::kRequest) {
  if (ssl_ == nullptr) throw std::bad_alloc();
  if (SSL_set_fd(ssl_, socket) != 1) {
    SSL_free(ssl_);
    throw std::bad_alloc();
  }
  SSL_set_accept_state(ssl_);
  SSL_set_msg_callback(ssl_, OnMessage);
  SSL_set_msg_callback_arg(ssl_, this);
}

void TlsTransport::OnMessage(int sent, int, int type, const void*, size_t size, SSL* ssl, void* self) {
  auto& transport = *static_cast<TlsTransport*>(self);
  if (sent != 0 || type != SSL3_RT_HANDSHAKE) return;
  if (!transport.done_) {
    transport.oversized_ |= size > kHandshakeMessageMax;
    return;
  }
  if (++transport.messages_ <= kMessagesMax) return;
  transport.broken_ = true;
  SSL_set_shutdown(ssl, SSL_RECEIVED_SHUTDOWN);  // OpenSSL would take in all messages that are there
}

TlsTransport::Step TlsTransport::Handshake() {
  if (abandoned_) return Step::kFailed;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  // OpenSSL takes memory for as long a hello as is announced: 128 KiB. So it has to be whole in one record.
  oversized_ |= result != 1 && SSL_want_read(ssl_) && SSL_get_state(ssl_) == TLS_ST_SR_CLNT_HELLO;
  if (result == 1 && !oversized_) {
    done_ = true;
    return Step::kDone;
  }
  const int error = oversized_ ? SSL_ERROR_SSL : SSL_get_error(ssl_, result);
  if (error == SSL_ERROR_WANT_READ) return Step::kRead;
  if (error == SSL_ERROR_WANT_WRITE) return Step::kWrite;
  problem_ = ERR_peek_last_error();
  ERR_clear_error();
  broken_ = true;
  return Step::kFailed;
}

std::string TlsTransport::Problem() const {
  if (oversized_) return "a message of the handshake is too long, or the first is not whole in one record";
  if (problem_ == 0) return "the client closed the connection during the handshake";
  const char* const reason = ERR_reason_error_string(problem_);
  const long check = SSL_get_verify_result(ssl_);  // says more than that the check failed
  return fmt::format("{}{}{}", reason == nullptr ? "unknown error" : reason, check == X509_V_OK ? "" : ": ",
                     check == X509_V_OK ? "" : X509_verify_cert_error_string(check));
}

void TlsTransport::TakeSubject() {
  const X509* const certificate = SSL_get0_peer_certificate(ssl_);
  if (certificate == nullptr || SSL_get_verify_result(ssl_) != X509_V_OK) return;
  subject_ = TextOf(X509_get_subject_name(certificate));
}

std::chrono::seconds TlsTransport::CertificateTime() const {
  constexpr std::chrono::days kMost{36'500};
  std::chrono::seconds least = kMost;
  const STACK_OF(X509)* const chain = SSL_get0_verified_chain(ssl_);
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    int days = 0;
    int seconds = 0;
    ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(sk_X509_value(chain, i)));
    least = std::min(least, std::min(std::chrono::days(days), kMost) + std::chrono::seconds(seconds));
  }
  return least;
}

error_code TlsTransport::ErrorOf(int result, bool may_want_to_read) {
  const int error = SSL_get_error(ssl_, result);
  if (!broken_ && error == SSL_ERROR_ZERO_RETURN) return asio::error::eof;
  if (!broken_ && error == SSL_ERROR_WANT_WRITE) return asio::error::would_block;
  // "In init" now means that a message is not whole.
  const bool may_wait = may_want_to_read && SSL_in_init(ssl_) == 0;
  if (!broken_ && error == SSL_ERROR_WANT_READ && may_wait) return asio::error::would_block;
  ERR_clear_error();
  broken_ = true;
  return asio::error::connection_aborted;
}

size_t TlsTransport::Read(asio::mutable_buffer into, error_code& error) {
  error = {};
  const size_t most = std::min(into.size(), kReadMax);
  size_t count = 0;
  waits_ = answers_ = false;
  for (size_t records = 0; count < most && records < kReadRecordsMax; ++records) {
    ERR_clear_error();
    size_t bytes = 0;
    const int result = SSL_read_ex(ssl_, static_cast<char*>(into.data()) + count, most - count, &bytes);
    if (result == 1) {
      count += bytes;
      moved_ += bytes;
      if (moved_ >= kMessagesPer) moved_ = messages_ = 0;
      // A short record is most often the last: save the read that would find nothing.
      if (bytes < kRecordMax / 2 && SSL_has_pending(ssl_) == 0) break;
      continue;
    }
    error = ErrorOf(result, true);
    waits_ = error == asio::error::would_block;
    answers_ = waits_ && SSL_want_write(ssl_);
    break;
  }
  if (broken_ && SSL_in_init(ssl_) == 1) return 0;  // do not keep half a message while the caller works
  // The next call finds an end or an error again.
  if (count > 0) error = {};
  return count;
}

size_t TlsTransport::Write(asio::const_buffer bytes, error_code& error) {
  error = {};
  const size_t most = std::min(bytes.size(), kWriteMax);
  size_t count = 0;
  while (count < most) {
    ERR_clear_error();
    size_t written = 0;
    // A record that waits has to be offered again with as many bytes at least, so offer all of them.
    const int result =
        SSL_write_ex(ssl_, static_cast<const char*>(bytes.data()) + count, bytes.size() - count, &written);
    unsent_ = false;
    if (result == 1) {
      count += written;
      continue;
    }
    error = ErrorOf(result, false);
    unsent_ = error == asio::error::would_block;
    break;
  }
  if (count > 0) error = {};
  return count;
}

size_t TlsTransport::Write(const std::array<asio::const_buffer, 2>& parts, error_code& error) {
  const auto& [first, second] = parts;
  if (first.size() == 0) return Write(second, error);
  if (second.size() == 0) return Write(first, error);
  std::array<char, kRecordMax> joined;
  const size_t of_first = std::min(first.size(), joined.size());
  const size_t of_second = std::min(second.size(), joined.size() - of_first);
  std::memcpy(joined.data(), first.data(), of_first);
  std::memcpy(joined.data() + of_first, second.data(), of_second);
  const size_t count = Write(asio::buffer(joined.data(), of_first + of_second), error);
  if (error || count < of_first + of_second) return count;
  if (of_first < first.size() || of_second == second.size()) return count;
  const size_t more = Write(second + of_second, error);
  error = {};  // the next call finds it again
  return count + more;
}

void TlsTransport::End() {
  if (!done_ || broken_ || unsent_) return;
  ERR_clear_error();
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

bool TlsTransport::Hold(const Account& account) {
  const bool incomplete = SSL_has_pending(ssl_) == 1 || std::strcmp(SSL_rstate_string(ssl_), "RH") != 0;
  const bool answers = SSL_in_init(ssl_) == 1;
  const size_t buffers = static_cast<size_t>(incomplete) + static_cast<size_t>(unsent_) + static_cast<size_t>(answers);
  const size_t bytes = buffers > 1 ? (buffers - 1) * kRecordBytes : 0;
  charge_.Lower(bytes);
  return charge_.Hold(bytes, account);
}

}  // namespace tocsin::net
