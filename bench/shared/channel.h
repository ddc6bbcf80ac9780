// Channel: a connection of the load generators, with TLS if it is given an authority. Does not block, except for the
// handshake, which is over when it is made. One thread.
#pragma once

#include <string>

#include <openssl/ssl.h>

#include "shared/net.h"

namespace tocsin::bench {

class Channel {
 public:
  /// `ca`: the file of the authority that signed the server's certificate; empty: clear text.
  Channel(const Endpoint& endpoint, const std::string& ca);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int fd() const { return fd_; }
  // As send and recv: -1 with EAGAIN if nothing can be moved now.
  ssize_t Send(const char* bytes, size_t size);
  ssize_t Receive(char* into, size_t size);
  /// Whether Receive finds something that the socket does not show.
  bool HasUnread() const { return ssl_ != nullptr && SSL_pending(ssl_) > 0; }

 private:
  void Shake(const Endpoint& endpoint, const std::string& ca);
  ssize_t ErrorOf(int result) const;

  const int fd_;
  SSL* ssl_ = nullptr;
};

}  // namespace tocsin::bench
