// Who the publisher is, and whom it trusts.
#include <boost/asio/ip/tcp.hpp>

#include "sinks/rabbitmq/rabbitmq_test_site.h"

namespace tocsin::rabbitmq {
namespace {

using testing::HasSubstr;
using testing::Not;

class LoginTest : public BrokerTest {
 protected:
  /// What becomes of one job with these options.
  Delivered DeliverOne(const Options& options) {
    receiver_->MakeQueue("ready_orders");
    Site site(options);
    Site::Topic& orders = site.Open("orders", {{"timeout_ms", "3000"}});
    orders.Deliver(1);
    EXPECT_TRUE(orders.Await());
    EXPECT_THAT(orders.last().reason, Not(HasSubstr(real::RabbitMqServer::kPassword)));
    return orders.last();
  }

  Options WithTls(std::string ca_file) {
    Options options = OptionsFor(*server_);
    options.tls = true;
    options.port = server_->tls_port();
    options.ca_file = std::move(ca_file);
    return options;
  }
};

TEST_F(LoginTest, AWrongPasswordIsSaidAndNotShown) {
  Options options = OptionsFor(*server_);
  options.password = "not-this-one";
  const Delivered delivered = DeliverOne(options);
  EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry);
  EXPECT_THAT(delivered.reason, HasSubstr("403 ACCESS_REFUSED"));
  EXPECT_THAT(delivered.reason, Not(HasSubstr("not-this-one")));
}

TEST_F(LoginTest, AVhostThatDoesNotExistIsSaid) {
  Options options = OptionsFor(*server_);
  options.vhost = "nope";
  const Delivered delivered = DeliverOne(options);
  EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry);
  EXPECT_THAT(delivered.reason, HasSubstr("530 NOT_ALLOWED"));
}

TEST_F(LoginTest, OverTlsWithTheRightAuthority) {
  EXPECT_EQ(DeliverOne(WithTls(server_->certificates().ca_file)).outcome, DeliverOutcome::kConfirmed);
}

TEST_F(LoginTest, AStrangersCertificateIsRefused) {
  const Delivered delivered = DeliverOne(WithTls(server_->certificates().wrong_ca_file));
  EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry);
  EXPECT_THAT(delivered.reason, HasSubstr("certificate verify failed"));
}

TEST_F(LoginTest, ACertificateOfAnotherHostIsRefused) {
  // The certificate names 127.0.0.1 and localhost; both of these lead there.
  Options options = WithTls(server_->certificates().ca_file);
  options.host = "localhost";
  EXPECT_EQ(DeliverOne(options).outcome, DeliverOutcome::kConfirmed);
  options.host = "::ffff:127.0.0.1";
  const Delivered delivered = DeliverOne(options);
  EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry);
  EXPECT_THAT(delivered.reason, HasSubstr("certificate verify failed"));
}

TEST_F(LoginTest, PlainTextToADoorOfTlsAndTheOtherWayRound) {
  Options options = OptionsFor(*server_);
  options.port = server_->tls_port();
  EXPECT_EQ(DeliverOne(options).outcome, DeliverOutcome::kRetry);
  options = WithTls(server_->certificates().ca_file);
  options.port = server_->port();
  EXPECT_EQ(DeliverOne(options).outcome, DeliverOutcome::kRetry);
}

TEST_F(LoginTest, AnotherPortSaysSo) {
  Options options = OptionsFor(*server_);
  options.port = 1;
  EXPECT_EQ(DeliverOne(options).reason, "RabbitMQ at 127.0.0.1:1: Connection refused");
}

TEST(RabbitmqPublisher, AFileOfAuthoritiesThatIsMissingIsAnErrorAtTheStart) {
  const auto made = Publisher::Make({.tls = true, .ca_file = "/nowhere/ca.pem"});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().field, "rabbitmq.ca_file");
  EXPECT_THAT(made.error().message, HasSubstr("/nowhere/ca.pem"));
}

TEST(RabbitmqPublisher, ItCanBeStoppedWhileItConnects) {
  boost::asio::io_context io;
  // Connections are taken by the system, and nobody speaks.
  boost::asio::ip::tcp::acceptor silent(io, {boost::asio::ip::address_v4::loopback(), 0});
  for (const uint16_t port : {uint16_t{1}, silent.local_endpoint().port()}) {
    Site site({.port = port});
    Site::Topic& orders = site.Open("orders");
    orders.Deliver(1);
    orders.Close();
    EXPECT_EQ(orders.last().outcome, DeliverOutcome::kRetry);
  }
}

TEST(RabbitmqPublisher, ATopicIsChecked) {
  Topic topic = DefaultTopic("orders");
  topic.delivery = {.sink = "rabbitmq", .settings = {}};
  const auto publisher = Publisher::Make({}).value();
  EXPECT_TRUE(publisher->Check(topic));
  topic.delivery.settings["routing_key"] = "{nope}";
  EXPECT_EQ(publisher->Check(topic).error().field, "delivery.routing_key");
}

}  // namespace
}  // namespace tocsin::rabbitmq
