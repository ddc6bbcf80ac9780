// TlsTransport: the TLS of one connection: bytes to and from its socket, which it does not own.
//
// It belongs to its connection, on whose loop everything runs, except for Handshake: a helper's thread may run that,
// and meanwhile nobody else touches the transport or closes the socket. The socket does not block.
//
// Memory: between two records OpenSSL keeps no buffer (SSL_MODE_RELEASE_BUFFERS). The memory plan has one buffer, of a
// record that waits for its client, for each connection: an ack that has arrived in part must not be refused. More of
// them are charged (Hold), and so is what a handshake takes.
//
// After the handshake a client may change its keys, and ask the server to. Such a message has five bytes, so the
// connection breaks if one is not whole: a write would have to wait for the rest. It also breaks if there are too many
// (kMessagesMax). If the answer does not fit into the socket, nothing is read until it does (ReadsWhenWritable).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>

#include "net/budget.h"
#include "net/server_tls.h"

namespace tocsin::net {

class TlsTransport {
 public:
  static constexpr size_t kHandshakeBytes = 48 << 10;  // with messages of kHandshakeMessageMax
  static constexpr size_t kHandshakeMessageMax = 16 << 10;
  static constexpr size_t kRecordBytes = 18 << 10;  // the buffer of a record that is not complete, or not sent
  static constexpr size_t kReadMax = 64 << 10;      // in one call: decrypting takes time
  static constexpr size_t kReadRecordsMax = 64;     // in one call: even an empty record takes a microsecond
  static constexpr size_t kWriteMax = 256 << 10;
  static constexpr size_t kMessagesMax = 32;  // changes of keys and the like, until the client sent so many bytes:
  static constexpr size_t kMessagesPer = 1 << 20;

  TlsTransport(std::shared_ptr<const ServerTls> tls, int socket, Budget& budget);
  ~TlsTransport() { SSL_free(ssl_); }
  TlsTransport(const TlsTransport&) = delete;
  TlsTransport& operator=(const TlsTransport&) = delete;

  enum class Step : uint8_t { kDone, kRead, kWrite, kFailed };
  /// Goes on until it is done, has failed, or needs the socket to be readable or writable.
  Step Handshake();
  /// The handshake's result is not wanted any more. On any thread.
  void Abandon() { abandoned_ = true; }
  /// Why it failed.
  std::string Problem() const;
  /// After the handshake, on the connection's loop.
  void TakeSubject();
  /// The subject of the client's verified certificate (RFC 2253), such as CN=worker,O=Acme; empty if it showed none.
  const std::string& subject() const { return subject_; }

  /// How long that certificate, and those that lead to its authority, are valid; a century if the client showed none.
  std::chrono::seconds CertificateTime() const;

  /// As read_some of a socket that does not block.
  size_t Read(boost::asio::mutable_buffer into, boost::system::error_code& error);
  /// Whether the next Read finds something without the socket.
  bool HasUnread() const {
    const bool ended = broken_ || (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0;
    return !waits_ && (ended || SSL_has_pending(ssl_) == 1);
  }
  /// Whether that Read can only go on when the socket is writable.
  bool ReadsWhenWritable() const { return answers_; }
  /// As write_some. What is not written has to be written next, in one piece or more, before anything else.
  size_t Write(boost::asio::const_buffer bytes, boost::system::error_code& error);
  /// The same for two parts, which share a record if that saves one.
  size_t Write(const std::array<boost::asio::const_buffer, 2>& parts, boost::system::error_code& error);
  /// Tells the client that nothing follows, if that can be done at once.
  void End();

  /// Charges what is kept while the connection waits for its client, except for one buffer. False if there is no room.
  bool Hold(const Account& account);
  bool HoldHandshake(const Account& account) { return charge_.Hold(kHandshakeBytes, account); }

 private:
  /// What a call that moved nothing means.
  boost::system::error_code ErrorOf(int result, bool may_want_to_read);
  static void OnMessage(int sent, int version, int type, const void* bytes, size_t size, SSL* ssl, void* self);

  const std::shared_ptr<const ServerTls> tls_;
  SSL* const ssl_;
  Charge charge_;
  unsigned long problem_ = 0;  // OpenSSL's number; 0: the client has gone
  bool oversized_ = false;     // a message of the handshake is
  std::string subject_;
  std::atomic<bool> abandoned_ = false;
  bool waits_ = false;    // the last read found nothing
  bool answers_ = false;  // it has to send the answer to a change of keys first
  bool unsent_ = false;   // a record waits for the socket
  size_t messages_ = 0;   // of OpenSSL's protocol since the handshake, or since the client sent kMessagesPer bytes
  size_t moved_ = 0;      // of those bytes
  bool broken_ = false;   // nothing more can be sent
  bool done_ = false;     // the handshake
};

}  // namespace tocsin::net
