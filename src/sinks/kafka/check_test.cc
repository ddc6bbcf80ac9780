#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "sinks/kafka/sinks.h"

namespace tocsin {
namespace {

using testing::HasSubstr;

KafkaOptions SomeKafka() {
  KafkaOptions options;
  options.brokers = "127.0.0.1:1";
  return options;
}

Topic With(std::map<std::string, std::string, std::less<>> settings, std::string name = "orders") {
  Topic topic = DefaultTopic(std::move(name));
  topic.delivery = {.sink = "kafka", .settings = std::move(settings)};
  return topic;
}

TEST(KafkaCheck, ATopicNeedsAServerThatKnowsKafka) {
  EXPECT_TRUE(CheckKafka(With({}), SomeKafka()));
  const Status refused = CheckKafka(With({}), KafkaOptions());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "delivery.sink");
  EXPECT_THAT(refused.error().message, HasSubstr("kafka.brokers"));
}

TEST(KafkaCheck, TemplatesAreSeenThrough) {
  EXPECT_TRUE(CheckKafka(With({{"kafka_topic", "{header:region}.{topic}"}, {"kafka_key", "{id}/{key}"}}), SomeKafka()));
  EXPECT_TRUE(CheckKafka(With({{"kafka_topic", "{key}"}, {"kafka_key", ""}}), SomeKafka()));
  const Status mark = CheckKafka(With({{"kafka_topic", "{topik}"}}), SomeKafka());
  ASSERT_FALSE(mark);
  EXPECT_EQ(mark.error().field, "delivery.kafka_topic");
  const Status key = CheckKafka(With({{"kafka_key", "{"}}), SomeKafka());
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().field, "delivery.kafka_key");
}

TEST(KafkaCheck, ANameThatNoJobCanMakeValidIsRefused) {
  for (const Topic& topic : {With({{"kafka_topic", "ready orders"}}), With({{"kafka_topic", "ready/{key}"}}),
                             With({}, "orders of today"), With({{"kafka_topic", std::string(250, 'x')}})}) {
    const Status refused = CheckKafka(topic, SomeKafka());
    ASSERT_FALSE(refused) << topic.delivery.Text("kafka_topic");
    EXPECT_EQ(refused.error().field, "delivery.kafka_topic");
    EXPECT_THAT(refused.error().message, HasSubstr("no name of a topic of Kafka"));
  }
  EXPECT_THAT(CheckKafka(With({{"kafka_topic", "bad name {id}"}}), SomeKafka()).error().message,
              HasSubstr("\"bad name {id}\""));
  EXPECT_THAT(CheckKafka(With({}, "orders of today"), SomeKafka()).error().message,
              HasSubstr("\"ready_orders of today\""));
}

TEST(KafkaCheck, OptionsThatCannotBeUsedAreToldAtTheStart) {
  const RealClock clock;
  KafkaOptions options = SomeKafka();
  EXPECT_TRUE(KafkaSinks::Make(options, clock));
  EXPECT_TRUE(KafkaSinks::Make(KafkaOptions(), clock)) << "a server without Kafka";
  options.security = KafkaOptions::Security::kSaslTls;
  options.username = "someone";
  options.password = "do-not-tell";
  options.ca_file = "/nowhere/ca.pem";
  const auto made = KafkaSinks::Make(options, clock);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("ssl.ca.location"));
  EXPECT_THAT(made.error().message, testing::Not(HasSubstr("do-not-tell")));
}

}  // namespace
}  // namespace tocsin
