#include "shared/channel.h"

#include <cerrno>

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tocsin::bench {
namespace {

SSL_CTX* ContextOf(const std::string& ca) {
  static SSL_CTX* const context = [&ca] {
    SSL_CTX* const made = SSL_CTX_new(TLS_client_method());
    if (SSL_CTX_load_verify_locations(made, ca.c_str(), nullptr) != 1) Die("--ca {} cannot be used", ca);
    SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(made, 1);
    SSL_CTX_set_default_read_buffer_len(made, 256 << 10);
    return made;
  }();
  return context;
}

}  // namespace

Channel::Channel(const Endpoint& endpoint, const std::string& ca) : fd_(Connect(endpoint)) {
  if (!ca.empty()) Shake(endpoint, ca);
}

Channel::~Channel() {
  SSL_free(ssl_);
  close(fd_);
}

void Channel::Shake(const Endpoint& endpoint, const std::string& ca) {
  ssl_ = SSL_new(ContextOf(ca));
  SSL_set_fd(ssl_, fd_);
  while (true) {
    const int result = SSL_connect(ssl_);
    if (result == 1) return;
    const int error = SSL_get_error(ssl_, result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      Die("no TLS with {}:{}: {}", endpoint.host, endpoint.port, ERR_reason_error_string(ERR_peek_last_error()));
    }
    pollfd polled{
        .fd = fd_, .events = static_cast<short>(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT), .revents = 0};
    poll(&polled, 1, -1);
  }
}

ssize_t Channel::ErrorOf(int result) const {
  const int error = SSL_get_error(ssl_, result);
  if (error == SSL_ERROR_ZERO_RETURN) return 0;
  errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
  return -1;
}

ssize_t Channel::Send(const char* bytes, size_t size) {
  if (ssl_ == nullptr) return send(fd_, bytes, size, MSG_NOSIGNAL);
  size_t sent = 0;
  ERR_clear_error();
  const int result = SSL_write_ex(ssl_, bytes, size, &sent);
  return result == 1 ? static_cast<ssize_t>(sent) : ErrorOf(result);
}

ssize_t Channel::Receive(char* into, size_t size) {
  if (ssl_ == nullptr) return recv(fd_, into, size, 0);
  size_t got = 0;
  while (got < size) {
    size_t bytes = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_, into + got, size - got, &bytes);
    if (result != 1 && got == 0) return ErrorOf(result);
    if (result != 1) break;
    got += bytes;
    if (SSL_has_pending(ssl_) == 0) break;
  }
  return static_cast<ssize_t>(got);
}

}  // namespace tocsin::bench
