#include "server/sinks.h"

#include <gmock/gmock.h>

#include "base/clock.h"
#include "model/delivery.h"
#include "server/server_test_site.h"

namespace tocsin {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class NodeSinksTest : public ServerTest {
 protected:
  Result<std::unique_ptr<NodeSinks>> Make(std::vector<std::string> arguments) {
    return NodeSinks::Make(ConfigWith(std::move(arguments)), clock_, {&loop_}, 100);
  }
  /// A topic that a server with this sink can serve, without any receiver.
  static Topic TopicWith(std::string_view sink) {
    Topic topic = DefaultTopic("orders");
    topic.delivery.sink = sink;
    if (sink == "webhook") topic.delivery.settings["url"] = "https://example.com/hooks";
    return topic;
  }

  RealClock clock_;
  net::AsioLoop loop_{clock_};
};

TEST_F(NodeSinksTest, EverySinkThatTopicsCanNameIsThereOnceItIsConfigured) {
  const auto sinks = Make({"--kafka-brokers=127.0.0.1:1", "--rabbitmq-url=amqp://127.0.0.1:1"}).value();
  for (const std::string_view name : SinkNames()) {
    const Topic topic = TopicWith(name);
    ASSERT_TRUE(Validate(topic.delivery)) << name;
    const Status checked = sinks->Check(topic);
    EXPECT_TRUE(checked) << checked.error().message;
    auto sink = sinks->Open(topic, loop_);
    ASSERT_TRUE(sink) << sink.error().message;
    bool closed = false;
    (*sink)->Close([&] { closed = true; });
    while (!closed) loop_.io().run_one();
  }
}

TEST_F(NodeSinksTest, WhatAdminsOfAPrefixCannotUseIsNamedUnlessItHasOwners) {
  const auto token = [](std::string prefix, auth::Scope scope) {
    auth::TokenRecord record;
    record.grant.name = "shop-admin";
    record.grant.prefix = std::move(prefix);
    record.grant.scopes.Add(scope);
    return record;
  };
  const auth::TokenSet admins({token("", auth::Scope::kAdmin), token("shop-", auth::Scope::kAdmin)});
  const std::vector<std::string> kafka{"--kafka-brokers=127.0.0.1:1"};
  EXPECT_THAT(ClosedToPrefixes(ConfigWith(kafka), admins),
              AllOf(HasSubstr("push.owners"), HasSubstr("shop-admin"), HasSubstr("shop-*"), HasSubstr("Kafka topic"),
                    Not(HasSubstr("RabbitMQ")), Not(HasSubstr("secret"))));
  EXPECT_THAT(
      ClosedToPrefixes(ConfigWith({"--rabbitmq-url=amqp://127.0.0.1:1", "--secrets-dir=" + folder_.At("s")}), admins),
      AllOf(HasSubstr("RabbitMQ"), HasSubstr("secret")));
  EXPECT_EQ(ClosedToPrefixes(ConfigWith({}), admins), "");
  EXPECT_EQ(ClosedToPrefixes(ConfigWith({kafka[0], "--push-owners=kafka:shop*=shop-"}), admins), "");
  const auth::TokenSet others({token("", auth::Scope::kAdmin), token("shop-", auth::Scope::kSubmit)});
  EXPECT_EQ(ClosedToPrefixes(ConfigWith(kafka), others), "");
}

TEST_F(NodeSinksTest, WhatACallerOfAPrefixMayUseIsWhatTheRulesGive) {
  Topic topic = TopicWith("webhook");
  topic.delivery.settings["secret"] = "shop";
  EXPECT_FALSE(Make({}).value()->CheckGiven(topic));
  EXPECT_TRUE(Make({"--push-owners=secret:shop=orders"}).value()->CheckGiven(topic));
}

TEST_F(NodeSinksTest, ASinkThatIsNotConfiguredNamesTheOptionToSet) {
  const auto sinks = Make({}).value();
  EXPECT_TRUE(sinks->Check(TopicWith("webhook"))) << "needs no option";
  const std::pair<std::string_view, const char*> options[] = {{"kafka", "kafka.brokers"}, {"rabbitmq", "rabbitmq.url"}};
  for (const auto& [name, option] : options) {
    const Status refused = sinks->Check(TopicWith(name));
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_EQ(refused.error().field, "delivery.sink");
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr(std::string(name)), HasSubstr(option)));
    EXPECT_FALSE(sinks->Open(TopicWith(name), loop_));
  }
}

TEST_F(NodeSinksTest, ASinkThatThisServerDoesNotHaveIsRefused) {
  const Status refused = Make({}).value()->Check(TopicWith("pigeon"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "delivery.sink");
}

TEST_F(NodeSinksTest, TheSettingsOfATopicReachItsKind) {
  const auto sinks = Make({"--kafka-brokers=127.0.0.1:1", "--rabbitmq-url=amqp://127.0.0.1:1"}).value();
  const std::tuple<const char*, const char*, const char*> settings[] = {{"webhook", "url", "http://127.0.0.1/"},
                                                                        {"webhook", "secret", "unknown"},
                                                                        {"kafka", "kafka_topic", "{nope}"},
                                                                        {"rabbitmq", "exchange", "{nope}"}};
  for (const auto& [sink, name, value] : settings) {
    Topic topic = TopicWith(sink);
    topic.delivery.settings[name] = value;
    const Status refused = sinks->Check(topic);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().field, fmt::format("delivery.{}", name));
  }
}

TEST_F(NodeSinksTest, SecretsComeFromTheFolderOfTheOption) {
  folder_.Write("hook-key", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
  const auto sinks = Make({"--secrets-dir=" + folder_.At("")}).value();
  Topic topic = TopicWith("webhook");
  topic.delivery.settings["secret"] = "hook-key";
  const Status checked = sinks->Check(topic);
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST_F(NodeSinksTest, AnOptionThatCannotBeUsedIsAnErrorAtTheStart) {
  const auto allow = Make({"--webhook-allow=10.0.0.1/8"});
  ASSERT_FALSE(allow);
  EXPECT_EQ(allow.error().field, "webhook.allow");
  const auto kafka = Make({"--kafka-brokers=127.0.0.1:1", "--kafka-security=tls", "--kafka-tls-ca-file=/nowhere/ca"});
  ASSERT_FALSE(kafka);
  EXPECT_THAT(kafka.error().message, HasSubstr("ssl.ca.location"));
  const auto rabbitmq = Make({"--rabbitmq-url=amqps://127.0.0.1:1", "--rabbitmq-ca-file=/nowhere/ca"});
  ASSERT_FALSE(rabbitmq);
  EXPECT_EQ(rabbitmq.error().field, "rabbitmq.ca_file");
}

}  // namespace
}  // namespace tocsin
