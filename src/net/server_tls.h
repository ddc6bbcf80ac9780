// ServerTls: what a door needs to speak TLS: a certificate with its key, and whose certificates it takes from clients.
//
// Immutable, so any number of threads may share one. To change the certificate, make another: connections keep theirs.
//
// TLS 1.2 and 1.3. Of 1.2 only suites with forward secrecy and authenticated encryption; no renegotiation and no
// compression. No session is resumed: there are no tickets whose key would open past connections of TLS 1.2, and each
// connection has its client's certificate checked.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "base/result.h"
#include "base/time.h"

namespace tocsin::net {

/// A file of PEM, as it was read. The option and the file are named in errors.
struct PemFile {
  std::string option = {};
  std::string path = {};
  std::string text = {};
};

class ServerTls {
 public:
  struct Options {
    PemFile certificate;         // of the server, then those that lead to its authority
    PemFile key;                 // without a passphrase
    PemFile client_ca = {};      // empty text: clients are not asked for certificates
    bool client_must = false;    // whether a client without a certificate is refused
    std::string_view alpn = {};  // the only protocol that clients may name; empty: whatever they name is ignored
  };

  /// kInvalidArgument, with the option and the file, if one cannot be used, the certificate is not of the key, or it is
  /// not valid at `now`.
  static Result<std::shared_ptr<const ServerTls>> Make(const Options& options, Time now);
  ~ServerTls() { SSL_CTX_free(context_); }
  ServerTls(const ServerTls&) = delete;
  ServerTls& operator=(const ServerTls&) = delete;

  SSL_CTX* context() const { return context_; }
  /// When the certificate does.
  Time expires() const { return expires_; }

 private:
  explicit ServerTls(std::string_view alpn);
  Status Load(const Options& options, Time now);
  Status LoadCertificate(const PemFile& file, Time now);
  Status LoadKey(const PemFile& file, const PemFile& certificate);
  Status LoadClientCa(const PemFile& file, bool client_must);

  SSL_CTX* const context_;
  std::string alpn_;  // as on the wire: with its length
  Time expires_{};
};

/// What a client over the limit of connections is sent: the alert internal_error. There is no better one.
constexpr std::string_view kTlsRefusal("\x15\x03\x03\0\x02\x02\x50", 7);

/// The reason of the error that OpenSSL put last into the thread's queue, which is empty then.
std::string TakeTlsError();

}  // namespace tocsin::net
