// TlsTransport on a pair of sockets, with a client that does what no client of good will does.
#include "net/tls_transport.h"

#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/error.hpp>
#include <gmock/gmock.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tls_test_site.h"

namespace tocsin::net {
namespace {

using boost::asio::buffer;
using boost::system::error_code;

constexpr uint8_t kHandshake = 22;
constexpr std::string_view kHalfAKeyUpdate("\x18\0\0\1", 4);

/// Both ends. `server` is the transport, `client` OpenSSL's own.
struct Pair {
  Pair() {
    std::signal(SIGPIPE, SIG_IGN);  // as the server does
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()), 0);
    server = std::make_unique<TlsTransport>(MakeTls(OptionsOf(Certificates().Issue("server"))), sockets[0], budget);
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_keylog_callback(context, [](const SSL* ssl, const char* line) {
      const std::string_view text(line);
      if (!text.starts_with("CLIENT_TRAFFIC_SECRET_0 ")) return;
      long size = 0;
      unsigned char* const bytes = OPENSSL_hexstr2buf(line + text.rfind(' ') + 1, &size);
      static_cast<Pair*>(SSL_get_app_data(ssl))->secret.assign(bytes, bytes + size);
      OPENSSL_free(bytes);
    });
  }
  ~Pair() {
    SSL_free(client);
    SSL_CTX_free(context);
    server.reset();
    for (const int socket : sockets) close(socket);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void Shake() {
    client = SSL_new(context);
    SSL_set_app_data(client, this);
    SSL_set_fd(client, sockets[1]);
    SSL_set_connect_state(client);
    auto step = TlsTransport::Step::kRead;
    for (int i = 0; i < 10 && step != TlsTransport::Step::kDone; ++i) {
      SSL_do_handshake(client);
      step = server->Handshake();
    }
    ASSERT_EQ(step, TlsTransport::Step::kDone);
  }
  void Put(std::string_view bytes) {
    ERR_clear_error();
    ASSERT_EQ(SSL_write(client, bytes.data(), static_cast<int>(bytes.size())), static_cast<int>(bytes.size()));
  }
  void UpdateKey(int kind = SSL_KEY_UPDATE_NOT_REQUESTED) {
    ASSERT_EQ(SSL_key_update(client, kind), 1);
    ASSERT_EQ(SSL_do_handshake(client), 1);
  }
  /// What the server reads, and the error at the end.
  std::string Read(error_code& error) {
    std::string all;
    std::string bytes(70'000, ' ');
    do {
      all.append(bytes, 0, server->Read(buffer(bytes), error));
    } while (!error);
    return all;
  }
  /// Nothing more fits into the server's socket, until the client has dropped that.
  size_t Fill() {
    size_t count = 0;
    while (send(sockets[0], "x", 1, 0) > 0) ++count;
    return count;
  }
  void Drop(size_t count) {
    for (char x = ' '; count > 0; --count) ASSERT_EQ(recv(sockets[1], &x, 1, 0), 1);
  }
  std::vector<unsigned char> Expand(std::string_view label, size_t size) {
    std::string info{static_cast<char>(size >> 8), static_cast<char>(size)};
    info += static_cast<char>(6 + label.size());
    info += "tls13 " + std::string(label) + '\0';
    EVP_KDF* const kdf = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
    EVP_KDF_CTX* const derive = EVP_KDF_CTX_new(kdf);
    int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
                           OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                           OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
                           OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
                           OSSL_PARAM_construct_end()};
    std::vector<unsigned char> out(size);
    EXPECT_EQ(EVP_KDF_derive(derive, out.data(), size, params), 1);
    EVP_KDF_CTX_free(derive);
    EVP_KDF_free(kdf);
    return out;
  }
  /// A record as the client would encrypt it: the one after `before` others.
  void SendRecord(uint8_t type, std::string_view bytes, uint8_t before) {
    const std::string plain = std::string(bytes) + static_cast<char>(type);
    const size_t size = plain.size() + 16;
    std::string record{'\x17', '\x03', '\x03', static_cast<char>(size >> 8), static_cast<char>(size)};
    record.resize(5 + size);
    auto* const out = reinterpret_cast<unsigned char*>(record.data());
    const auto key = Expand("key", 16);
    auto nonce = Expand("iv", 12);
    nonce[11] ^= before;
    EVP_CIPHER_CTX* const cipher = EVP_CIPHER_CTX_new();
    int count = 0;
    EVP_EncryptInit_ex(cipher, EVP_aes_128_gcm(), nullptr, key.data(), nonce.data());
    EVP_EncryptUpdate(cipher, nullptr, &count, out, 5);
    EVP_EncryptUpdate(cipher, out + 5, &count, reinterpret_cast<const unsigned char*>(plain.data()),
                      static_cast<int>(plain.size()));
    EVP_EncryptFinal_ex(cipher, out + 5 + count, &count);
    EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, 16, out + 5 + plain.size());
    EVP_CIPHER_CTX_free(cipher);
    ASSERT_EQ(send(sockets[1], record.data(), record.size(), 0), static_cast<ssize_t>(record.size()));
  }

  metrics::Registry metrics;
  Budget budget{4 << 20, metrics};
  std::array<int, 2> sockets{};
  std::unique_ptr<TlsTransport> server;
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL* client = nullptr;
  std::vector<unsigned char> secret;  // of what the client sends
};

TEST(TlsTransport, ReadsRecordsThatAClientEncrypts) {
  Pair pair;
  pair.Shake();
  pair.SendRecord(23, "hello", 0);
  error_code error;
  EXPECT_EQ(pair.Read(error), "hello");
  EXPECT_EQ(error, boost::asio::error::would_block);
}

TEST(TlsTransport, AClientMayChangeKeysAndAskForNewOnes) {
  Pair pair;
  pair.Shake();
  const std::string much(TlsTransport::kMessagesPer / 32, 'x');
  error_code error;
  for (size_t i = 0; i < 3 * TlsTransport::kMessagesMax; ++i) {
    pair.UpdateKey(i % 2 == 0 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
    pair.Put(much);
    ASSERT_EQ(pair.Read(error), much);
    ASSERT_EQ(error, boost::asio::error::would_block);
    ASSERT_EQ(pair.server->Write(buffer("ok", 2), error), 2U);
    std::array<char, 3> answer{};
    ASSERT_EQ(SSL_read(pair.client, answer.data(), 2), 2);
    EXPECT_STREQ(answer.data(), "ok");
  }
}

TEST(TlsTransport, ManyChangesOfKeysBreakTheConnection) {
  for (const bool with_data : {false, true}) {
    SCOPED_TRACE(with_data);
    Pair pair;
    pair.Shake();
    for (size_t i = 0; i < 2 * TlsTransport::kMessagesMax; ++i) {
      pair.UpdateKey();
      if (with_data) pair.Put("x");
    }
    error_code error;
    EXPECT_LE(pair.Read(error).size(), TlsTransport::kMessagesMax);
    EXPECT_EQ(error, boost::asio::error::connection_aborted);
    EXPECT_TRUE(pair.server->HasUnread()) << "the next read finds it again";
  }
}

TEST(TlsTransport, HalfAMessageBreaksTheConnection) {
  for (const std::string_view data : {"", "hello"}) {
    SCOPED_TRACE(data);
    Pair pair;
    pair.Shake();
    if (!data.empty()) pair.SendRecord(23, data, 0);
    pair.SendRecord(kHandshake, kHalfAKeyUpdate, data.empty() ? 0 : 1);
    error_code error;
    std::string bytes(1000, ' ');
    EXPECT_EQ(pair.server->Read(buffer(bytes), error), 0U);
    EXPECT_EQ(error, boost::asio::error::connection_aborted) << "it would wait for the client when it writes";
    pair.server->Write(buffer("x", 1), error);
    EXPECT_EQ(error, boost::asio::error::connection_aborted);
  }
}

TEST(TlsTransport, NothingIsReadBeforeTheAnswerToAChangeOfKeysIsSent) {
  Pair pair;
  pair.Shake();
  const size_t filled = pair.Fill();
  pair.UpdateKey(SSL_KEY_UPDATE_REQUESTED);
  pair.Put("hello");
  error_code error;
  EXPECT_EQ(pair.Read(error), "hello");
  EXPECT_FALSE(pair.server->ReadsWhenWritable());
  pair.server->Write(buffer("x", 1), error);  // OpenSSL answers before it
  EXPECT_EQ(error, boost::asio::error::would_block);
  pair.Put("world");
  EXPECT_EQ(pair.Read(error), "");
  EXPECT_EQ(error, boost::asio::error::would_block);
  EXPECT_TRUE(pair.server->ReadsWhenWritable()) << "the socket is readable, so to wait for that would not end";
  EXPECT_TRUE(pair.server->Hold(nullptr));
  EXPECT_EQ(pair.budget.bytes(), TlsTransport::kRecordBytes) << "one more than each connection may have";

  pair.Drop(filled);
  EXPECT_EQ(pair.Read(error), "world");
  EXPECT_FALSE(pair.server->ReadsWhenWritable());
  EXPECT_EQ(pair.server->Write(buffer("x", 1), error), 1U);
  char answer = ' ';
  EXPECT_EQ(SSL_read(pair.client, &answer, 1), 1);
  EXPECT_EQ(answer, 'x');
}

TEST(TlsTransport, ManySmallRecordsAreReadInSteps) {
  Pair pair;
  pair.Shake();
  for (size_t i = 0; i < 2 * TlsTransport::kReadRecordsMax; ++i) pair.Put("x");
  error_code error;
  std::string bytes(1000, ' ');
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(pair.server->Read(buffer(bytes), error), TlsTransport::kReadRecordsMax);
    EXPECT_FALSE(error);
  }
}

}  // namespace
}  // namespace tocsin::net
