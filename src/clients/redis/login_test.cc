// Passwords, users and TLS.
#include "clients/redis/client_test_site.h"

namespace tocsin::redis {
namespace {

class LoginTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = real::WhyNoRedis(); !why.empty()) GTEST_SKIP() << why;
  }
  void StartServer(real::RedisOptions options) {
    options.append_only = false;
    auto made = real::RedisServer::Make(std::move(options));
    ASSERT_TRUE(made) << made.error().message;
    server_ = std::move(*made);
    options_ = At(Mode::kSingle, {server_->port()});
    options_.command_timeout = Millis(500);
  }
  std::string Ping() { return ClientSite(options_).Ask("PING"); }
  void ExpectRefused(std::string_view why) {
    const std::string answer = Ping();
    EXPECT_TRUE(answer.starts_with("unavailable: not sent: ")) << answer;
    EXPECT_NE(answer.find(why), std::string::npos) << answer;
  }

  std::unique_ptr<real::RedisServer> server_;
  Options options_;
};

TEST_F(LoginTest, APassword) {
  StartServer({.password = "secret"});
  options_.password = "secret";
  EXPECT_EQ(Ping(), "PONG");
  options_.password = "wrong";
  ExpectRefused("AUTH is refused: WRONGPASS");
  options_.password = "";
  ExpectRefused("NOAUTH");
}

TEST_F(LoginTest, AUserAndItsRights) {
  StartServer({.users = {"alice on >secret ~tocsin:* &* +@all -role", "bob on >secret ~* resetchannels +@all"}});
  options_.username = "alice";
  options_.password = "secret";
  {
    ClientSite site(options_);
    EXPECT_EQ(site.Ask("SET", {"tocsin:k", "v"}), "OK");  // although it may not ask for the role
    EXPECT_TRUE(site.Ask("SET", {"other", "v"}).starts_with("!NOPERM"));
    EXPECT_TRUE(Listening(site, "news").Hears());
  }
  options_.username = "nobody";
  ExpectRefused("WRONGPASS");
}

TEST_F(LoginTest, ASubscriptionThatIsRefusedDoesNotStopTheCommands) {
  StartServer({.users = {"bob on >secret ~* resetchannels +@all"}});
  options_.username = "bob";
  options_.password = "secret";
  ClientSite site(options_);
  Listening listening(site, "news");
  EXPECT_EQ(site.Ask("SET", {"k", "v"}), "OK");
  EXPECT_EQ(listening.heard(), 0);
}

TEST_F(LoginTest, Tls) {
  StartServer({.password = "secret", .tls = true});
  options_.password = "secret";
  options_.tls.on = true;
  options_.tls.ca_file = server_->certificates().ca_file;
  options_.command_timeout = Millis(3'000);
  {
    ClientSite site(options_);
    EXPECT_EQ(site.Ask("SET", {"k", std::string(1'000'000, 'x')}), "OK");
    EXPECT_EQ(site.Ask("GET", {"k"}), std::string(1'000'000, 'x'));
    EXPECT_TRUE(Listening(site, "news").Hears());
  }
  options_.endpoints[0].host = "localhost";
  EXPECT_EQ(Ping(), "PONG");
}

TEST_F(LoginTest, TlsWithACertificateThatIsNotTrusted) {
  StartServer({.tls = true});
  options_.tls.on = true;
  options_.tls.ca_file = server_->certificates().wrong_ca_file;
  ExpectRefused("certificate verify failed");
  options_.tls.verify = false;
  EXPECT_EQ(Ping(), "PONG");
}

TEST_F(LoginTest, TlsWithACertificateOfAnotherHost) {
  StartServer({.tls = true, .lines = {"bind 127.0.0.1 127.0.0.2"}});
  options_.tls.on = true;
  options_.tls.ca_file = server_->certificates().ca_file;
  options_.endpoints[0].host = "127.0.0.2";
  ExpectRefused("certificate verify failed");
}

TEST_F(LoginTest, TlsWithACertificateOfTheClient) {
  StartServer({.tls = true, .tls_client_certificates = true});
  options_.tls.on = true;
  options_.tls.ca_file = server_->certificates().ca_file;
  const std::string without = Ping();
  EXPECT_TRUE(without.starts_with("unavailable: ")) << without;
  options_.tls.cert_file = server_->certificates().client_cert_file;
  options_.tls.key_file = server_->certificates().client_key_file;
  EXPECT_EQ(Ping(), "PONG");
}

TEST_F(LoginTest, PlainTextToAServerOfTls) {
  StartServer({.tls = true});
  const std::string answer = Ping();
  EXPECT_TRUE(answer.starts_with("unavailable: not sent: ")) << answer;
}

TEST_F(LoginTest, TlsToAServerOfPlainText) {
  // It takes the greeting for the beginning of a line, and waits for the rest.
  StartServer({});
  options_.tls.on = true;
  options_.connect_timeout = Millis(200);
  ExpectRefused("no connection within 200 ms");
}

}  // namespace
}  // namespace tocsin::redis
