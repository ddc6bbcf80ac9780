#include "model/delivery.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/topic.h"

namespace tocsin {
namespace {

using ::testing::HasSubstr;

Delivery Webhook(std::map<std::string, std::string, std::less<>> more = {}) {
  Delivery delivery{.sink = "webhook", .settings = {{"url", "https://example.com/hook"}}};
  for (auto& [name, value] : more) delivery.settings.insert_or_assign(name, value);
  return delivery;
}

void ExpectRefused(const Delivery& delivery, const std::string& field, const std::string& says) {
  const Status status = Validate(delivery);
  ASSERT_FALSE(status) << field;
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  EXPECT_EQ(status.error().field, field);
  EXPECT_THAT(status.error().message, HasSubstr(says));
}

TEST(Delivery, IsPullUnlessSaidOtherwise) {
  const Topic topic = DefaultTopic("t");
  EXPECT_FALSE(topic.delivery.Pushes());
  EXPECT_TRUE(Validate(topic));
}

TEST(Delivery, ASettingThatIsNotGivenHasItsDefault) {
  const Delivery delivery = Webhook({{"in_flight", "7"}, {"retry_4xx", "true"}});
  ASSERT_TRUE(Validate(delivery));
  EXPECT_EQ(delivery.Text("url"), "https://example.com/hook");
  EXPECT_EQ(delivery.Number("in_flight"), 7U);
  EXPECT_TRUE(delivery.Flag("retry_4xx"));
  EXPECT_EQ(delivery.Number("timeout_ms"), 5000U);
  EXPECT_EQ(delivery.Text("secret"), "");
  EXPECT_EQ((Delivery{.sink = "kafka", .settings = {}}.Number("in_flight")), 20'000U) << "the sink's own default";
}

TEST(Delivery, EveryDefaultIsValid) {
  for (const std::string_view sink : SinkNames()) {
    Delivery delivery{.sink = std::string(sink), .settings = {}};
    for (const DeliveryField* field : DeliveryFieldsOf(sink)) {
      const bool needed = field->fallback.empty() && field->min > 0;
      delivery.settings.emplace(field->name, needed ? std::string(field->min, 'x') : std::string(field->fallback));
      EXPECT_FALSE(field->doc.empty()) << field->name;
    }
    EXPECT_TRUE(Validate(delivery)) << sink;
  }
}

TEST(Delivery, ANameMeansTheSameForEverySink) {
  std::map<std::string_view, DeliveryFieldKind> kinds;
  for (const DeliveryField& field : DeliveryFields()) {
    EXPECT_EQ(kinds.emplace(field.name, field.kind).first->second, field.kind) << field.name;
  }
  const auto names = DeliverySettingNames();
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(names.size(), kinds.size());
}

TEST(Delivery, SaysWhatIsWrong) {
  ExpectRefused({.sink = "webhok", .settings = {}}, "delivery.sink", R"(did you mean "webhook"?)");
  ExpectRefused({.sink = "webhook", .settings = {}}, "delivery.url", "missing: the sink webhook needs it");
  ExpectRefused({.sink = "", .settings = {{"url", "x"}}}, "delivery.url", "the delivery is pull");
  ExpectRefused(Webhook({{"in_fligt", "1"}}), "delivery.in_fligt", R"(did you mean "in_flight"?)");
  ExpectRefused(Webhook({{"kafka_topic", "x"}}), "delivery.kafka_topic", "no setting of the sink webhook");
  ExpectRefused(Webhook({{"url", ""}}), "delivery.url", "1 to 2048");
  ExpectRefused(Webhook({{"url", "http://a\nb"}}), "delivery.url", "control character");
  ExpectRefused(Webhook({{"secret", "\xff"}}), "delivery.secret", "UTF-8");
  ExpectRefused(Webhook({{"retry_4xx", "yes"}}), "delivery.retry_4xx", "true or false");
}

TEST(Delivery, NumbersHoldAtTheirEdges) {
  for (const char* good : {"1", "10000"}) EXPECT_TRUE(Validate(Webhook({{"in_flight", good}}))) << good;
  for (const char* bad : {"0", "10001", "-1", "", "1.5", "1 ", "+1", "0x10", "99999999999999999999"}) {
    ExpectRefused(Webhook({{"in_flight", bad}}), "delivery.in_flight", "1 to 10000");
  }
}

TEST(Delivery, AChangeKeepsWhatItDoesNotName) {
  Delivery delivery = Webhook({{"in_flight", "7"}});
  Apply({.sink = std::nullopt, .settings = {{"secret", "orders"}}}, delivery);
  EXPECT_EQ(delivery, Webhook({{"in_flight", "7"}, {"secret", "orders"}}));
  Apply({.sink = "webhook", .settings = {{"in_flight", "8"}}}, delivery);
  EXPECT_EQ(delivery, Webhook({{"in_flight", "8"}, {"secret", "orders"}}));
}

TEST(Delivery, AnotherSinkBeginsAnew) {
  Delivery delivery = Webhook({{"in_flight", "7"}});
  Apply({.sink = "kafka", .settings = {{"rate", "5"}}}, delivery);
  EXPECT_EQ(delivery, (Delivery{.sink = "kafka", .settings = {{"rate", "5"}}}));
  Apply({.sink = "pull", .settings = {}}, delivery);
  EXPECT_EQ(delivery, Delivery{});
}

TEST(Delivery, ThePlaceIsNamedWithoutWhatMayBeASecret) {
  EXPECT_EQ(PlaceOf(Webhook({{"url", "https://hooks.example.com:8443/T0/SECRET?key=SECRET"}})),
            "https://hooks.example.com:8443");
  EXPECT_EQ(PlaceOf(Webhook({{"url", "http://me:SECRET@[::1]:80"}})), "http://[::1]:80");
  EXPECT_EQ(PlaceOf({.sink = "kafka", .settings = {{"kafka_topic", "orders"}}}), "orders");
  EXPECT_EQ(PlaceOf({.sink = "rabbitmq", .settings = {}}), "ready_{topic}");
  EXPECT_EQ(PlaceOf({.sink = "rabbitmq", .settings = {{"exchange", "x"}, {"routing_key", "r"}}}), "x r");
}

TEST(Delivery, ATopicWithASinkNeedsALeaseThatCanBeExtended) {
  Topic topic = DefaultTopic("t");
  topic.lease = Millis(2'999);
  EXPECT_TRUE(Validate(topic));
  topic.delivery = Webhook();
  ASSERT_FALSE(Validate(topic));
  EXPECT_EQ(Validate(topic).error().field, "lease_ms");
  topic.lease = Millis(3'000);
  EXPECT_TRUE(Validate(topic));
}

TEST(Delivery, ATopicTakesAChangeOfItsDelivery) {
  Topic topic = DefaultTopic("t");
  TopicChange change;
  change.delivery = DeliveryChange{.sink = "webhook", .settings = {{"url", "https://example.com/hook"}}};
  Apply(change, topic);
  EXPECT_EQ(topic.delivery, Webhook());
  Apply(TopicChange().Set("max_attempts", 3), topic);
  EXPECT_EQ(topic.delivery, Webhook()) << "a change of something else leaves it";
}

}  // namespace
}  // namespace tocsin
