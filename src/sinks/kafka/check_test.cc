#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "sinks/kafka/factory.h"

namespace tocsin::kafka {
namespace {

using testing::HasSubstr;

Options SomeKafka() {
  Options options;
  options.brokers = "127.0.0.1:1";
  return options;
}

Topic With(std::map<std::string, std::string, std::less<>> settings, std::string name = "orders") {
  Topic topic = DefaultTopic(std::move(name));
  topic.delivery = {.sink = "kafka", .settings = std::move(settings)};
  return topic;
}

Status Check(const Topic& topic) {
  const RealClock clock;
  return Factory::Make(SomeKafka(), clock).value()->Check(topic);
}

TEST(KafkaCheck, TemplatesAreSeenThrough) {
  EXPECT_TRUE(Check(With({{"kafka_topic", "{header:region}.{topic}"}, {"kafka_key", "{id}/{key}"}})));
  EXPECT_TRUE(Check(With({{"kafka_topic", "{key}"}, {"kafka_key", ""}})));
  const Status mark = Check(With({{"kafka_topic", "{topik}"}}));
  ASSERT_FALSE(mark);
  EXPECT_EQ(mark.error().field, "delivery.kafka_topic");
  const Status key = Check(With({{"kafka_key", "{"}}));
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().field, "delivery.kafka_key");
}

TEST(KafkaCheck, ANameThatNoJobCanMakeValidIsRefused) {
  for (const Topic& topic : {With({{"kafka_topic", "ready orders"}}), With({{"kafka_topic", "ready/{key}"}}),
                             With({}, "orders of today"), With({{"kafka_topic", std::string(250, 'x')}})}) {
    const Status refused = Check(topic);
    ASSERT_FALSE(refused) << topic.delivery.Text("kafka_topic");
    EXPECT_EQ(refused.error().field, "delivery.kafka_topic");
    EXPECT_THAT(refused.error().message, HasSubstr("not a valid name of a Kafka topic"));
  }
  EXPECT_THAT(Check(With({{"kafka_topic", "bad name {id}"}})).error().message, HasSubstr("\"bad name {id}\""));
  EXPECT_THAT(Check(With({}, "orders of today")).error().message, HasSubstr("\"ready_orders of today\""));
}

TEST(KafkaCheck, OptionsThatCannotBeUsedAreToldAtTheStart) {
  const RealClock clock;
  Options options = SomeKafka();
  EXPECT_TRUE(Factory::Make(options, clock));
  options.tls = true;
  options.sasl_mechanism = "PLAIN";
  options.username = "someone";
  options.password = "do-not-tell";
  options.ca_file = "/nowhere/ca.pem";
  const auto made = Factory::Make(options, clock);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("ssl.ca.location"));
  EXPECT_THAT(made.error().message, testing::Not(HasSubstr("do-not-tell")));
}

TEST(KafkaCheck, WhatBelongsToOtherTopicsIsNotWrittenTo) {
  const RealClock clock;
  Options options = SomeKafka();
  options.owners = Owners::Parse("kafka:ready_shop*=shop-").value();
  const auto sinks = Factory::Make(options, clock).value();
  EXPECT_TRUE(sinks->Check(With({})));
  EXPECT_TRUE(sinks->Check(With({}, "shop-orders")));
  const Status refused = sinks->Check(With({{"kafka_topic", "ready_shop-orders"}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kForbidden);
  EXPECT_EQ(refused.error().field, "delivery.kafka_topic");
}

}  // namespace
}  // namespace tocsin::kafka
