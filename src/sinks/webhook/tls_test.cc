// https: a real TLS server, and certificates that are right and wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "real/certificates.h"
#include "real/process.h"
#include "sinks/webhook/receiver_test_site.h"
#include "sinks/webhook/sink_test_site.h"

namespace tocsin::webhook {
namespace {

namespace ssl = boost::asio::ssl;
using testing::HasSubstr;

class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = real::MakeCertificates(folder_.path());
    ASSERT_TRUE(made) << made.error().message;
    certificates_ = *std::move(made);
    server_.use_certificate_chain_file(certificates_.server_cert_file);
    server_.use_private_key_file(certificates_.server_key_file, ssl::context::pem);
    receiver_.emplace([](const Received&) { return Reply{}; }, &server_, "0.0.0.0");
  }
  Delivered Send(const std::string& host, const std::string& ca_file) {
    Options options = SinkSite::LoopbackAllowed();
    options.ca_file = ca_file;
    options.find_addresses = [](const std::string&) -> Result<Addresses> {
      return Addresses{boost::asio::ip::make_address("127.0.0.1")};
    };
    SinkSite site(options);
    Sink& sink = site.Open(WebhookTopic(fmt::format("https://{}:{}/", host, receiver_->port())));
    Delivered first = site.Send(sink);
    if (first.outcome == DeliverOutcome::kConfirmed) return site.Send(sink);
    return first;
  }

  real::Folder folder_;
  real::Certificates certificates_;
  ssl::context server_{ssl::context::tls_server};
  std::optional<Receiver> receiver_;
};

TEST_F(TlsTest, ACertificateOfTheHostIsTrusted) {
  EXPECT_EQ(Send("127.0.0.1", certificates_.ca_file).outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(receiver_->connections(), 1) << "both requests on one connection";
  EXPECT_EQ(Send("localhost", certificates_.ca_file).outcome, DeliverOutcome::kConfirmed);
}

TEST_F(TlsTest, ACertificateOfAnotherHostIsNot) {
  for (const char* host : {"127.0.0.2", "other.example"}) {
    const Delivered delivered = Send(host, certificates_.ca_file);
    EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry);
    EXPECT_THAT(delivered.reason, HasSubstr("its certificate is not accepted")) << host;
    EXPECT_THAT(delivered.reason, HasSubstr("mismatch")) << host;
  }
  EXPECT_TRUE(receiver_->received().empty());
}

TEST_F(TlsTest, ACertificateOfAnUnknownAuthorityIsNot) {
  for (const std::string& ca_file : {std::string(), certificates_.wrong_ca_file}) {
    const Delivered delivered = Send("127.0.0.1", ca_file);
    EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry);
    EXPECT_THAT(delivered.reason, HasSubstr("its certificate is not accepted"));
  }
  EXPECT_TRUE(receiver_->received().empty());
}

// What is still being encrypted and sent must not be gone with the request.
TEST_F(TlsTest, AnAnswerThatComesBeforeABatchIsSentCounts) {
  receiver_->Greet("HTTP/1.1 503 Busy\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
  Options options = SinkSite::LoopbackAllowed();
  options.ca_file = certificates_.ca_file;
  SinkSite site(options);
  const std::string url = fmt::format("https://127.0.0.1:{}/", receiver_->port());
  Sink& sink = site.Open(WebhookTopic(url, {{"batch", "100"}, {"in_flight", "1"}}));
  const std::string payload(9'000, 'p');
  for (int i = 0; i < 20; ++i) {
    site.Deliver(sink, std::vector<JobView>(100, Job("order-7", payload)));
    site.UntilAnswered();
  }
  for (const auto& delivered : site.outcomes()) {
    ASSERT_EQ(delivered->outcome, DeliverOutcome::kRetry);
    ASSERT_EQ(delivered->reason, "the receiver answered 503 Busy");
  }
}

TEST_F(TlsTest, AnOldProtocolIsNotSpoken) {
  SSL_CTX_set_security_level(server_.native_handle(), 0);
  SSL_CTX_set_min_proto_version(server_.native_handle(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(server_.native_handle(), TLS1_1_VERSION);
  const Delivered delivered = Send("127.0.0.1", certificates_.ca_file);
  EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry);
  EXPECT_THAT(delivered.reason, HasSubstr("TLS handshake"));
}

TEST_F(TlsTest, AServerWithoutTlsMeansRetry) {
  Receiver plain([](const Received&) { return Reply{}; });
  SinkSite site;
  Sink& sink = site.Open(WebhookTopic(fmt::format("https://127.0.0.1:{}/", plain.port())));
  EXPECT_EQ(site.Send(sink).outcome, DeliverOutcome::kRetry);
}

}  // namespace
}  // namespace tocsin::webhook
