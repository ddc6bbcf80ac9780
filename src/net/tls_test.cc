// TLS of the server's doors, with OpenSSL as the client, over real sockets. The handshakes run on a helper's thread.
#include <csignal>

#include <gmock/gmock.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include "net/connection.h"
#include "net/socket_test_site.h"
#include "net/tls_test_site.h"

namespace tocsin::net {
namespace {

using boost::asio::buffer;
using boost::system::error_code;
using testing::HasSubstr;

constexpr std::string_view kPlainAnswer = "this port speaks TLS\n";

class TlsTest : public SocketTest {
 protected:
  struct EchoDoor;

  /// Sends back what arrives, in two parts at a time.
  struct Echo final : Connection {
    Echo(EchoDoor& door, Socket socket) : Connection(door, std::move(socket), nullptr), test(door.test) {}
    void Start() override {
      test.subject = certificate_subject();
      ++test.started;
      Next();
    }
    void Drain() override { Close(); }
    void TokensChanged() override {}
    bool IsLate(Deadline::TimePoint) const override { return false; }
    void TimeOut() override {}
    void OnClose() override {}

    void Next() {
      AwaitReadable([this](error_code error) {
        if (!open()) return;
        std::array<char, 5000> bytes;  // less than a record
        const size_t count = error ? 0 : ReadSome(buffer(bytes), error);
        if (error == boost::asio::error::would_block) return Next();
        if (error) {
          test.ended = error;
          return Close();
        }
        held.append(bytes.data(), count);
        Write();
      });
    }
    void Write() {
      while (!held.empty()) {
        error_code error;
        const size_t head = std::min<size_t>(held.size(), 100);
        held.erase(0, WriteSome(std::array{boost::asio::const_buffer(held.data(), head),
                                           boost::asio::const_buffer(held.data() + head, held.size() - head)},
                                error));
        if (error == boost::asio::error::would_block) {
          return AwaitWritable([this](const error_code&) {
            if (open()) Write();
          });
        }
        if (error) return Close();
      }
      test.close_when_echoed ? Close() : Next();
    }

    TlsTest& test;
    std::string held;
  };

  struct EchoDoor final : Door {
    EchoDoor(TlsTest& owner, AsioLoop& loop, Budget& budget, metrics::Registry& metrics)
        : Door("test", loop, budget, metrics), test(owner) {}
    ~EchoDoor() override { CloseAll(); }
    std::shared_ptr<Connection> Make(Socket socket, ConnectionPass) override {
      return std::make_shared<Echo>(*this, std::move(socket));
    }
    std::string PlainAnswer() const override { return std::string(kPlainAnswer); }

    TlsTest& test;
  };

  /// OpenSSL at the client's end.
  struct TlsClient {
    explicit TlsClient(Client connected) : client(std::move(connected)), context(SSL_CTX_new(TLS_client_method())) {}
    ~TlsClient() {
      SSL_free(ssl);
      SSL_CTX_free(context);
    }
    TlsClient(const TlsClient&) = delete;
    TlsClient& operator=(const TlsClient&) = delete;
    void Begin() {
      ssl = SSL_new(context);
      SSL_set_fd(ssl, client.socket.native_handle());
      SSL_set_connect_state(ssl);
    }

    Client client;
    SSL_CTX* context;
    SSL* ssl = nullptr;
  };

  TlsTest() {
    std::signal(SIGPIPE, SIG_IGN);  // as the server does
    door_->SpeakTls(MakeTls(OptionsOf(Certificates().Issue("server"))));
  }

  void Accept(Socket socket) override { door_->Accept(std::move(socket), nullptr); }
  void Expire() override { door_->Expire(); }

  /// Runs the loop until `call`, a function of OpenSSL, has a result: 1, or SSL_get_error's.
  template <class Call>
  int Do(SSL* ssl, Call call) {
    int error = 0;
    RunWhile([&] {
      ERR_clear_error();
      const int result = call();
      error = result > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl, result);
      return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    });
    return error;
  }
  static void Certify(TlsClient& tls, const TestCertificates::Issued& issued) {
    const auto use = [](const std::string& text, auto read) {
      BIO* const bytes = BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
      auto* const made = read(bytes, nullptr, nullptr, nullptr);
      BIO_free(bytes);
      return made;
    };
    X509* const certificate = use(issued.certificate, PEM_read_bio_X509);
    EVP_PKEY* const key = use(issued.key, PEM_read_bio_PrivateKey);
    SSL_CTX_use_certificate(tls.context, certificate);
    SSL_CTX_use_PrivateKey(tls.context, key);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  bool Shake(TlsClient& tls) {
    if (tls.ssl == nullptr) tls.Begin();
    return Do(tls.ssl, [&] { return SSL_do_handshake(tls.ssl); }) == SSL_ERROR_NONE;
  }
  int Put(TlsClient& tls, std::string_view bytes) {
    return Do(tls.ssl, [&] { return SSL_write(tls.ssl, bytes.data(), static_cast<int>(bytes.size())); });
  }
  /// Adds to client.got.
  int Get(TlsClient& tls) {
    std::array<char, 4096> bytes;
    size_t count = 0;
    const int error = Do(tls.ssl, [&] { return SSL_read_ex(tls.ssl, bytes.data(), bytes.size(), &count); });
    tls.client.got.append(bytes.data(), count);
    return error;
  }
  std::string Echoed(TlsClient& tls, std::string_view bytes) {
    EXPECT_EQ(Put(tls, bytes), SSL_ERROR_NONE);
    while (tls.client.got.size() < bytes.size() && Get(tls) == SSL_ERROR_NONE) {
    }
    return std::move(tls.client.got);
  }
  /// What a client sends first, as a whole.
  static std::string Hello() {
    TlsClient tls{Client{boost::asio::ip::tcp::socket(io_of_none), {}}};
    SSL* const ssl = SSL_new(tls.context);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl);
    SSL_do_handshake(ssl);
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(SSL_get_wbio(ssl), &bytes);
    std::string hello(bytes, static_cast<size_t>(size));
    SSL_free(ssl);
    return hello;
  }
  int Handshakes(std::string_view result) {
    const std::string text = metrics_.RenderPrometheus();
    const std::string name = fmt::format("tocsin_tls_handshakes_total{{door=\"test\",result=\"{}\"}} ", result);
    const size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + name.size()));
  }

  static inline boost::asio::io_context io_of_none;
  std::string subject;
  int started = 0;
  error_code ended;
  bool close_when_echoed = false;
  metrics::Registry metrics_;
  Budget budget_{4 << 20, metrics_};
  std::unique_ptr<EchoDoor> door_ = std::make_unique<EchoDoor>(*this, loop_, budget_, metrics_);
};

TEST_F(TlsTest, CarriesMegabytesInBothDirections) {
  client_buffer_bytes = 32 << 10;
  TlsClient tls(Connect());
  ASSERT_TRUE(Shake(tls));
  std::string sent;
  for (size_t i = 0; sent.size() < (2 << 20); ++i) sent += fmt::format("{} ", i * i);
  SSL_set_mode(tls.ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  std::string got;
  size_t written = 0;
  RunWhile([&] {
    size_t count = 0;
    ERR_clear_error();
    // Reads less than it writes, so that the server's end fills up too.
    if (written < sent.size() && SSL_write_ex(tls.ssl, sent.data() + written, sent.size() - written, &count) == 1) {
      written += count;
    }
    std::array<char, 9000> bytes;
    if (SSL_read_ex(tls.ssl, bytes.data(), bytes.size(), &count) == 1) got.append(bytes.data(), count);
    return got.size() < sent.size();
  });
  EXPECT_EQ(got, sent);
}

TEST_F(TlsTest, SpeaksBothVersionsAndNoOlderOne) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient tls(Connect());
    SSL_CTX_set_max_proto_version(tls.context, version);
    ASSERT_TRUE(Shake(tls));
    EXPECT_EQ(SSL_version(tls.ssl), version);
    EXPECT_EQ(Echoed(tls, "hello"), "hello");
    EXPECT_EQ(SSL_SESSION_is_resumable(SSL_get0_session(tls.ssl)), 0);
  }
  TlsClient old(Connect());
  SSL_CTX_set_security_level(old.context, 0);
  SSL_CTX_set_min_proto_version(old.context, TLS1_1_VERSION);
  SSL_CTX_set_max_proto_version(old.context, TLS1_1_VERSION);
  EXPECT_FALSE(Shake(old));
  RunWhile([&] { return Handshakes("failed") == 0; });
  EXPECT_EQ(Handshakes("done"), 2);
  EXPECT_EQ(started, 2);
}

TEST_F(TlsTest, TakesOnlySuitesWithForwardSecrecyAndAuthenticatedEncryption) {
  for (const char* suites : {"AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES128-SHA"}) {
    TlsClient tls(Connect());
    SSL_CTX_set_max_proto_version(tls.context, TLS1_2_VERSION);
    SSL_CTX_set_cipher_list(tls.context, suites);
    EXPECT_FALSE(Shake(tls)) << suites;
  }
}

TEST_F(TlsTest, DoesNotNegotiateAgain) {
  TlsClient tls(Connect());
  SSL_CTX_set_max_proto_version(tls.context, TLS1_2_VERSION);
  ASSERT_TRUE(Shake(tls));
  ASSERT_EQ(SSL_renegotiate(tls.ssl), 1);
  EXPECT_NE(Do(tls.ssl, [&] { return SSL_do_handshake(tls.ssl); }), SSL_ERROR_NONE);
  EXPECT_THAT(TakeTlsError(), HasSubstr("no renegotiation"));
}

TEST_F(TlsTest, ChoosesTheProtocolOfItsDoor) {
  ServerTls::Options options = OptionsOf(Certificates().Issue("server"));
  options.alpn = "http/1.1";
  door_->SpeakTls(MakeTls(options));
  const auto shake = [&](std::string_view offered) -> std::string {
    TlsClient tls(Connect());
    SSL_CTX_set_alpn_protos(tls.context, reinterpret_cast<const unsigned char*>(offered.data()),
                            static_cast<unsigned>(offered.size()));
    if (!Shake(tls)) return "refused";
    const unsigned char* chosen = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(tls.ssl, &chosen, &size);
    return {reinterpret_cast<const char*>(chosen), size};
  };
  EXPECT_EQ(shake("\x02h2\x08http/1.1"), "http/1.1");
  EXPECT_EQ(shake("\x02h2"), "refused");
  EXPECT_EQ(shake(""), "");
}

TEST_F(TlsTest, AClientWithoutTlsIsToldSo) {
  for (const std::string_view bytes : {"GET / HTTP/1.1\r\n\r\n", "*1\r\n$4\r\nPING\r\n", "x"}) {
    auto client = Connect();
    Send(client, bytes);
    EXPECT_EQ(ReadToEnd(client), kPlainAnswer);
  }
  EXPECT_EQ(Handshakes("plain"), 3);
  EXPECT_EQ(started, 0);
}

TEST_F(TlsTest, AHandshakeHasADeadline) {
  const std::string hello = Hello();
  std::vector<Client> clients;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{5}, hello.size() - 1, hello.size()}) {
    clients.push_back(Connect());
    Send(clients.back(), std::string_view(hello).substr(0, size));
  }
  RunWhile([&] {
    while (clients.back().Take()) {
    }
    return clients.back().got.empty();
  });
  Pass(Millis(9'000));
  for (Client& client : clients) {
    client.Take();
    EXPECT_FALSE(client.closed);
  }
  Pass(Millis(2'000));
  for (Client& client : clients) ReadToEnd(client);
  EXPECT_EQ(Handshakes("timeout"), 5);
  clients.clear();  // what is still under way for them finds no handshake to go on with
  Settle();
  EXPECT_EQ(started, 0);
}

TEST_F(TlsTest, AHelloThatIsNotWholeTakesNoMemoryAndOneThatIsHasRoom) {
  const std::string hello = Hello();
  auto client = Connect();
  Send(client, std::string_view(hello).substr(0, hello.size() - 1));
  EXPECT_EQ(budget_.bytes(), 0U);
  Send(client, hello.substr(hello.size() - 1));
  RunWhile([&] { return !client.Take(); });
  EXPECT_EQ(budget_.bytes(), TlsTransport::kHandshakeBytes);
  client.socket.close();
  RunWhile([&] { return budget_.bytes() > 0; });
  EXPECT_EQ(Handshakes("failed"), 1);
}

TEST_F(TlsTest, AnUrgentByteInTheHelloDoesNotKeepTheLoopBusy) {
  for (const size_t at : {0, 3, 100}) {
    const std::string hello = Hello();
    auto client = Connect();
    const int socket = client.socket.native_handle();
    ASSERT_EQ(::send(socket, hello.data(), at, 0), static_cast<ssize_t>(at));
    ASSERT_EQ(::send(socket, "x", 1, MSG_OOB), 1);
    ASSERT_EQ(::send(socket, hello.data() + at, hello.size() - at - 1, 0), static_cast<ssize_t>(hello.size() - at - 1));
    size_t handlers = 0;
    for (int i = 0; i < 1000; ++i) handlers += loop_.io().poll_one();
    EXPECT_LT(handlers, 100U) << at;
    ASSERT_EQ(::send(socket, &hello.back(), 1, 0), 1);
    RunWhile([&] { return !client.Take() && !client.closed; });
    EXPECT_FALSE(client.got.empty()) << at << ": the byte is no part of the hello";
  }
}

TEST_F(TlsTest, AHelloThatIsNotWholeInOneRecordIsRefused) {
  auto first = Connect();
  Send(first, std::string_view("\x16\3\1\0\4\1\2\0\0", 9));  // announces 128 KiB, for which OpenSSL takes memory
  EXPECT_EQ(ReadToEnd(first), "");
  EXPECT_EQ(Handshakes("failed"), 1);

  auto second = Connect();
  std::string hello = Hello();  // made to offer a key of a group that nobody knows: the server asks for another
  hello[hello.find(std::string_view("\0\x1d\0\x17", 4)) + 1] = '\x7f';
  hello[hello.find(std::string_view("\0\x24\0\x1d\0\x20", 6)) + 3] = '\x7f';
  Send(second, hello);
  RunWhile([&] { return !second.Take(); });
  EXPECT_FALSE(second.closed);
  Send(second, std::string_view("\x16\3\3\0\4\1\2\0\0", 9));
  ReadToEnd(second);
  EXPECT_EQ(Handshakes("failed"), 2);
  EXPECT_EQ(budget_.bytes(), 0U);
}

TEST_F(TlsTest, AHugeHelloIsRefused) {
  std::string hello = Hello();  // one of 30,000 bytes, padded, in two records
  constexpr size_t kHello = 30'000;
  constexpr size_t kRecord = 15'000;
  hello.erase(0, 5);
  const size_t padding = kHello - hello.size() - 4;
  const auto put = [&](size_t at, size_t value) {
    hello[at] = static_cast<char>(value >> 8);
    hello[at + 1] = static_cast<char>(value & 0xff);
  };
  const size_t extensions = hello.find(std::string_view("\0\x0b\0\4\3\0\1\2", 8)) - 2;  // the first of them
  put(extensions, kHello - extensions - 2);
  put(2, kHello - 4);
  hello += std::string("\0\x15", 2) + std::string(2 + padding, '\0');
  put(kHello - padding - 2, padding);
  const std::string head("\x16\3\1\x3a\x98", 5);
  auto client = Connect();
  const std::string all = head + hello.substr(0, kRecord) + head + hello.substr(kRecord);
  ASSERT_EQ(::send(client.socket.native_handle(), all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
  ReadToEnd(client);
  EXPECT_EQ(Handshakes("failed"), 1);
}

TEST_F(TlsTest, AHandshakeWaitsForRoom) {
  Charge charge(budget_, Charge::For::kAnswer);
  charge.Force(4 << 20);
  TlsClient tls(Connect());
  tls.Begin();
  for (int i = 0; i < 100; ++i) {  // time enough for the helper's thread, if it had anything to do
    ERR_clear_error();
    EXPECT_LE(SSL_do_handshake(tls.ssl), 0);
    loop_.io().run_one_for(Millis(1));
  }
  EXPECT_EQ(SSL_get_state(tls.ssl), TLS_ST_CW_CLNT_HELLO) << "the server has said nothing";
  charge.Clear();
  Pass(Millis(1'000));
  EXPECT_TRUE(Shake(tls));
  EXPECT_EQ(Echoed(tls, "hello"), "hello");
}

TEST_F(TlsTest, ARecordThatIsNotCompleteNeedsNoRoom) {
  TlsClient tls(Connect());
  ASSERT_TRUE(Shake(tls));
  EXPECT_EQ(Echoed(tls, "hello"), "hello");
  EXPECT_EQ(budget_.bytes(), 0U);
  Charge charge(budget_, Charge::For::kAnswer);
  charge.Force(6 << 20);
  // The first bytes of a record of application data.
  for (const std::string_view bytes : {std::string_view("\x17\x03\x03\x10\x00", 5), std::string_view("x")}) {
    Send(tls.client, bytes);
    Settle();
    EXPECT_FALSE(tls.client.Take());
    EXPECT_FALSE(tls.client.closed);
  }
}

TEST_F(TlsTest, BothSidesSayThatNothingFollows) {
  TlsClient tls(Connect());
  ASSERT_TRUE(Shake(tls));
  SSL_shutdown(tls.ssl);
  RunWhile([&] { return !ended; });
  EXPECT_EQ(ended, boost::asio::error::eof);
  EXPECT_EQ(Get(tls), SSL_ERROR_ZERO_RETURN);

  close_when_echoed = true;
  TlsClient other(Connect());
  ASSERT_TRUE(Shake(other));
  EXPECT_EQ(Echoed(other, "hello"), "hello");
  EXPECT_EQ(Get(other), SSL_ERROR_ZERO_RETURN);
}

TEST_F(TlsTest, KnowsTheSubjectOfACheckedCertificateAlone) {
  ServerTls::Options options = OptionsOf(Certificates().Issue("server"));
  options.client_ca = {"tls.client_ca", "ca.pem", Certificates().ca()};
  const TestCertificates strangers;
  const auto shake = [&](const TestCertificates* authority, long seconds = 3600) {
    subject = "none";
    TlsClient tls(Connect());
    if (authority != nullptr) Certify(tls, authority->Issue("worker, of Zürich", seconds));
    // With TLS 1.3 the client hears only afterwards what the server thinks of its certificate.
    if (!Shake(tls) || Put(tls, "x") != SSL_ERROR_NONE || Get(tls) != SSL_ERROR_NONE) return std::string("refused");
    return subject;
  };
  for (const bool must : {true, false}) {
    options.client_must = must;
    door_->SpeakTls(MakeTls(options));
    EXPECT_EQ(shake(&Certificates()), "CN=worker\\, of Zürich");
    EXPECT_EQ(shake(nullptr), must ? "refused" : "");
    EXPECT_EQ(shake(&strangers), "refused");
    EXPECT_EQ(shake(&Certificates(), -60), "refused");
  }
}

TEST_F(TlsTest, AConnectionEndsWithItsCertificate) {
  ServerTls::Options options = OptionsOf(Certificates().Issue("server"));
  options.client_ca = {"tls.client_ca", "ca.pem", Certificates().ca()};
  door_->SpeakTls(MakeTls(options));
  TlsClient without(Connect());
  ASSERT_TRUE(Shake(without));
  TlsClient with(Connect());
  Certify(with, Certificates().Issue("worker", 100));
  ASSERT_TRUE(Shake(with));
  EXPECT_EQ(Echoed(with, "hello"), "hello");
  Pass(Millis(80'000));
  EXPECT_EQ(Echoed(with, "hello"), "hello");
  Pass(Millis(21'000));
  EXPECT_EQ(Get(with), SSL_ERROR_ZERO_RETURN);
  EXPECT_EQ(Echoed(without, "hello"), "hello");
}

TEST_F(TlsTest, BytesThatComeWithTheEndOfTheHandshakeAreRead) {
  TlsClient tls(Connect());
  tls.ssl = SSL_new(tls.context);
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(tls.ssl, in, out);
  SSL_set_connect_state(tls.ssl);
  const auto flush = [&] {
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(out, &bytes);
    Send(tls.client, {bytes, static_cast<size_t>(size)});
    BIO_reset(out);
  };
  const auto pump = [&] {
    while (tls.client.Take()) {
    }
    BIO_write(in, tls.client.got.data(), static_cast<int>(tls.client.got.size()));
    tls.client.got.clear();
  };
  ASSERT_LT(SSL_do_handshake(tls.ssl), 1);
  flush();
  RunWhile([&] {
    pump();
    return SSL_do_handshake(tls.ssl) != 1;
  });
  ASSERT_EQ(SSL_write(tls.ssl, "hello", 5), 5);
  flush();  // in one piece
  char echoed[6] = {};
  RunWhile([&] {
    pump();
    return SSL_read(tls.ssl, echoed, 5) != 5;
  });
  EXPECT_STREQ(echoed, "hello");
}

TEST_F(TlsTest, ConnectionsKeepTheirCertificateWhenItChanges) {
  TlsClient before(Connect());
  ASSERT_TRUE(Shake(before));
  door_->SpeakTls(MakeTls(OptionsOf(Certificates().Issue("renewed"))));
  EXPECT_EQ(Echoed(before, "still here"), "still here");
  TlsClient after(Connect());
  ASSERT_TRUE(Shake(after));
  char name[64] = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(after.ssl)), NID_commonName, name,
                            sizeof(name));
  EXPECT_STREQ(name, "renewed");
}

TEST_F(TlsTest, ADoorEndsDuringHandshakes) {
  const std::string hello = Hello();
  std::vector<Client> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(Connect());
    Send(clients.back(), hello);
  }
  door_.reset();
  Settle();  // what the helper's thread has done
  EXPECT_EQ(started, 0);
}

TEST(ServerTls, RefusesWhatCannotBeUsedAndNamesTheFile) {
  const auto good = Certificates().Issue("server");
  const auto error_of = [](const ServerTls::Options& options) {
    const auto made = ServerTls::Make(options, Now());
    return made ? "no error" : fmt::format("{}: {}", made.error().field, made.error().message);
  };
  EXPECT_EQ(error_of(OptionsOf(good)), "no error");
  EXPECT_THAT(error_of(OptionsOf(Certificates().Issue("server", -60))),
              HasSubstr("tls.certificate: tls.certificate: c.pem expired at 20"));
  EXPECT_EQ(error_of(OptionsOf({good.certificate, Certificates().Issue("other").key})),
            "tls.key: tls.key: k.pem is not the key of the first certificate in c.pem (tls.certificate)");
  EXPECT_THAT(error_of(OptionsOf({"hello", good.key})), HasSubstr("c.pem has no certificate in PEM"));
  EXPECT_THAT(error_of(OptionsOf({good.certificate, "hello"})), HasSubstr("k.pem has no private key in PEM"));
  EXPECT_THAT(
      error_of(OptionsOf({good.certificate + "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", good.key})),
      HasSubstr("c.pem has something that is no certificate"));
  ServerTls::Options options = OptionsOf(good);
  options.client_ca = {"tls.client_ca", "ca.pem", "hello"};
  EXPECT_EQ(error_of(options), "tls.client_ca: tls.client_ca: ca.pem has no certificate in PEM");
}

}  // namespace
}  // namespace tocsin::net
