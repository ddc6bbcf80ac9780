#include "net/server_tls.h"

#include <ctime>
#include <new>

#include <fmt/chrono.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace tocsin::net {
namespace {

constexpr const char* kSuitesOfTls12 = "ECDHE+AESGCM:ECDHE+CHACHA20";

struct Freeing {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <class T>
using Owned = std::unique_ptr<T, Freeing>;

Owned<BIO> BytesOf(const PemFile& file) {
  Owned<BIO> bytes(BIO_new_mem_buf(file.text.data(), static_cast<int>(file.text.size())));
  if (!bytes) throw std::bad_alloc();
  return bytes;
}

std::unexpected<Error> Bad(const PemFile& file, std::string_view why) {
  return FailField(Code::kInvalidArgument, file.option, "{}: {} {}", file.option, file.path, why);
}

/// A passphrase would have to be typed at each start.
int NoPassphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

/// Null at the end of the file, and if what follows is no certificate: then the error stays in the queue.
Owned<X509> ReadCertificate(BIO* bytes) { return Owned<X509>(PEM_read_bio_X509(bytes, nullptr, nullptr, nullptr)); }

/// Whether the last read failed only because no more PEM follows; empties the queue.
bool IsEnd() {
  const unsigned long error = ERR_peek_last_error();
  const bool end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (end) ERR_clear_error();
  return end;
}

Time TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return Time{};
  return Time(std::chrono::seconds(timegm(&parts)));
}

std::string TimeText(Time time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", std::chrono::floor<std::chrono::seconds>(time));
}

int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size, const unsigned char* offered,
                   unsigned offered_size, void* wanted) {
  const std::string& alpn = *static_cast<const std::string*>(wanted);
  if (alpn.empty()) return SSL_TLSEXT_ERR_NOACK;
  unsigned char* found = nullptr;
  const int result = SSL_select_next_proto(&found, chosen_size, reinterpret_cast<const unsigned char*>(alpn.data()),
                                           static_cast<unsigned>(alpn.size()), offered, offered_size);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

}  // namespace

std::string TakeTlsError() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(error);
  return reason == nullptr ? "unknown error" : reason;
}

ServerTls::ServerTls(std::string_view alpn) : context_(SSL_CTX_new(TLS_server_method())) {
  if (context_ == nullptr) throw std::bad_alloc();
  if (!alpn.empty()) alpn_ = static_cast<char>(alpn.size()) + std::string(alpn);
}

Result<std::shared_ptr<const ServerTls>> ServerTls::Make(const Options& options, Time now) {
  ERR_clear_error();
  std::shared_ptr<ServerTls> made(new ServerTls(options.alpn));
  TOCSIN_TRY(made->Load(options, now));
  return made;
}

Status ServerTls::Load(const Options& options, Time now) {
  SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
  // Requests and replies have lengths, so an end without close_notify cannot cut one short unnoticed.
  SSL_CTX_set_options(
      context_, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context_, 0);  // of TLS 1.3, which the option leaves
  SSL_CTX_set_mode(context_,
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_max_cert_list(context_, 16 << 10);  // of a client: OpenSSL takes memory for what is announced
  SSL_CTX_set_read_ahead(context_, 1);            // a record's header and body in one read
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  if (SSL_CTX_set_cipher_list(context_, kSuitesOfTls12) != 1) {
    return Fail(Code::kInternal, "OpenSSL has none of the suites {}: {}", kSuitesOfTls12, TakeTlsError());
  }
  SSL_CTX_set_alpn_select_cb(context_, ChooseProtocol, &alpn_);
  TOCSIN_TRY(LoadCertificate(options.certificate, now));
  TOCSIN_TRY(LoadKey(options.key, options.certificate));
  return options.client_ca.text.empty() ? Status() : LoadClientCa(options.client_ca, options.client_must);
}

Status ServerTls::LoadCertificate(const PemFile& file, Time now) {
  const Owned<BIO> bytes = BytesOf(file);
  const Owned<X509> own = ReadCertificate(bytes.get());
  if (!own) return Bad(file, fmt::format("has no certificate in PEM: {}", TakeTlsError()));
  if (SSL_CTX_use_certificate(context_, own.get()) != 1) {
    return Bad(file, fmt::format("cannot be used: {}", TakeTlsError()));
  }
  while (Owned<X509> next = ReadCertificate(bytes.get())) {
    if (SSL_CTX_add0_chain_cert(context_, next.get()) != 1) {
      return Bad(file, fmt::format("has a certificate that cannot be used: {}", TakeTlsError()));
    }
    (void)next.release();  // the context owns it now
  }
  if (!IsEnd()) return Bad(file, fmt::format("has something that is no certificate: {}", TakeTlsError()));
  const Time begins = TimeOf(X509_get0_notBefore(own.get()));
  expires_ = TimeOf(X509_get0_notAfter(own.get()));
  if (now >= expires_) return Bad(file, fmt::format("expired at {}; put a new certificate there", TimeText(expires_)));
  if (now < begins) {
    return Bad(file, fmt::format("is valid from {} on: is the clock of this machine right?", TimeText(begins)));
  }
  return {};
}

Status ServerTls::LoadKey(const PemFile& file, const PemFile& certificate) {
  const Owned<BIO> bytes = BytesOf(file);
  bool asked = false;
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(bytes.get(), nullptr, NoPassphrase, &asked));
  if (asked) {
    ERR_clear_error();
    return Bad(file, "is protected with a passphrase: take it off with `openssl pkey`, and keep the file private");
  }
  if (!key) return Bad(file, fmt::format("has no private key in PEM: {}", TakeTlsError()));
  if (X509_check_private_key(SSL_CTX_get0_certificate(context_), key.get()) != 1) {
    ERR_clear_error();
    return Bad(file,
               fmt::format("is not the key of the first certificate in {} ({})", certificate.path, certificate.option));
  }
  if (SSL_CTX_use_PrivateKey(context_, key.get()) != 1) {
    return Bad(file, fmt::format("cannot be used: {}", TakeTlsError()));
  }
  return {};
}

Status ServerTls::LoadClientCa(const PemFile& file, bool client_must) {
  const Owned<BIO> bytes = BytesOf(file);
  size_t count = 0;
  for (; const Owned<X509> next = ReadCertificate(bytes.get()); ++count) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), next.get()) != 1 ||
        SSL_CTX_add_client_CA(context_, next.get()) != 1) {
      return Bad(file, fmt::format("has a certificate that cannot be used: {}", TakeTlsError()));
    }
  }
  if (!IsEnd()) return Bad(file, fmt::format("has something that is no certificate: {}", TakeTlsError()));
  if (count == 0) return Bad(file, "has no certificate in PEM");
  SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | (client_must ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
  return {};
}

}  // namespace tocsin::net
