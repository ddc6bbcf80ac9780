#include "model/owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Owners With(std::string_view rules) { return Owners::Parse(rules).value(); }

TEST(OwnersTest, WithoutARuleEverythingIsEverybodys) {
  EXPECT_TRUE(With("").empty());
  EXPECT_TRUE(With("").Allows(Owned::kSecret, "shop", "bank-orders"));
  EXPECT_TRUE(With("secret:shop=shop-").Allows(Owned::kSecret, "bank", "bank-orders"));
  EXPECT_TRUE(With("secret:shop=shop-").Allows(Owned::kKafka, "shop", "bank-orders")) << "another kind";
}

TEST(OwnersTest, WhatAPrefixOwnsNoOtherMayUse) {
  const Owners owners = With("secret:shop=shop-,kafka:ready_shop*=shop-,exchange:shop=shop-,queue:=shop-");
  EXPECT_TRUE(owners.Allows(Owned::kSecret, "shop", "shop-orders"));
  EXPECT_FALSE(owners.Allows(Owned::kSecret, "shop", "bank-orders"));
  EXPECT_FALSE(owners.Allows(Owned::kSecret, "shop", "shop"));
  EXPECT_TRUE(owners.Allows(Owned::kKafka, "ready_shop-orders", "shop-orders"));
  EXPECT_FALSE(owners.Allows(Owned::kKafka, "ready_shop-orders", "bank-orders"));
  EXPECT_TRUE(owners.Allows(Owned::kKafka, "ready_bank-orders", "bank-orders"));
  EXPECT_FALSE(owners.Allows(Owned::kExchange, "shop", "bank-orders"));
  EXPECT_TRUE(owners.Allows(Owned::kExchange, "shop2", "bank-orders")) << "not the same name";
  EXPECT_FALSE(owners.Allows(Owned::kQueue, "", "bank-orders"));
}

TEST(OwnersTest, SeveralPrefixesMayShareOne) {
  const Owners owners = With("secret:*=ops-,secret:shop*=shop-,secret:public=");
  EXPECT_TRUE(owners.Allows(Owned::kSecret, "shop-1", "shop-orders"));
  EXPECT_TRUE(owners.Allows(Owned::kSecret, "shop-1", "ops-orders"));
  EXPECT_FALSE(owners.Allows(Owned::kSecret, "shop-1", "bank-orders"));
  EXPECT_FALSE(owners.Allows(Owned::kSecret, "anything", "bank-orders"));
  EXPECT_TRUE(owners.Allows(Owned::kSecret, "public", "bank-orders"));
}

TEST(OwnersTest, ASecretHasNoOtherNameByWhichItCanBeReached) {
  const Owners owners = With("secret:shop-key=shop-");
  for (const char* name : {"shop-key", "SHOP_KEY", "shop.key", "Shop-Key"}) {  // all are TOCSIN_SECRET_SHOP_KEY
    EXPECT_FALSE(owners.Allows(Owned::kSecret, name, "bank-orders")) << name;
  }
}

Topic Pushing(std::string name, std::string sink, std::map<std::string, std::string, std::less<>> settings) {
  Topic topic = DefaultTopic(std::move(name));
  topic.delivery = {.sink = std::move(sink), .settings = std::move(settings)};
  return topic;
}

TEST(OwnersTest, ACallerOfAPrefixMayUseOnlyWhatARuleGives) {
  const std::pair<Topic, const char*> named[] = {
      {Pushing("bank-t", "webhook", {{"secret", "any"}}), "delivery.secret"},
      {Pushing("bank-t", "kafka", {}), "delivery.kafka_topic"},
      {Pushing("bank-t", "kafka", {{"kafka_topic", "x"}}), "delivery.kafka_topic"},
      {Pushing("bank-t", "rabbitmq", {{"exchange", "x"}}), "delivery.exchange"},
      {Pushing("bank-t", "rabbitmq", {}), "delivery.routing_key"},
  };
  for (const auto& [topic, field] : named) {
    for (const char* rules : {"", "secret:*=shop-,kafka:*=shop-,exchange:*=shop-,queue:*=shop-"}) {
      const Status refused = With(rules).CheckGiven(topic);
      ASSERT_FALSE(refused) << field;
      EXPECT_EQ(refused.error().code, Code::kForbidden);
      EXPECT_EQ(refused.error().field, field);
      EXPECT_THAT(refused.error().message, AllOf(HasSubstr("push.owners"), HasSubstr(field)));
    }
    EXPECT_TRUE(With("secret:*=bank-,kafka:*=bank-,exchange:*=bank-,queue:*=bank-").CheckGiven(topic)) << field;
  }
  EXPECT_TRUE(With("").CheckGiven(Pushing("bank-t", "webhook", {}))) << "it signs nothing";
  EXPECT_TRUE(With("exchange:x=bank-").CheckGiven(Pushing("bank-t", "rabbitmq", {{"exchange", "x"}})));
}

TEST(OwnersTest, WhatAJobMayMakeOfANameHasToBeGivenToo) {
  const auto kafka = [](std::string_view rules, std::string name) {
    return With(rules).CheckGiven(Pushing("bank-t", "kafka", {{"kafka_topic", std::move(name)}})).has_value();
  };
  EXPECT_TRUE(kafka("kafka:ready_bank-t=bank-", "ready_{topic}"));
  EXPECT_FALSE(kafka("kafka:ready_bank-t=bank-", "ready_{topic}{key}"));
  EXPECT_TRUE(kafka("kafka:ready_*=bank-", "ready_{key}"));
  EXPECT_FALSE(kafka("kafka:ready_*=bank-", "{header:to}"));
  EXPECT_FALSE(kafka("kafka:ready_*=bank-", "rea{key}"));
  const auto rabbit = [](std::string_view rules, std::string exchange) {
    const Topic topic = Pushing("bank-t", "rabbitmq", {{"exchange", std::move(exchange)}, {"routing_key", "q"}});
    return With(rules).CheckGiven(topic).has_value();
  };
  EXPECT_FALSE(rabbit("exchange:*=bank-", "{key}")) << "for a job without a key it is the default one, with a queue";
  EXPECT_TRUE(rabbit("exchange:*=bank-,queue:q=bank-", "{key}"));
  EXPECT_TRUE(rabbit("exchange:bank*=bank-", "bank{key}"));
}

TEST(OwnersTest, ARefusalDoesNotSayWhoseItIs) {
  const Status refused = With("kafka:ready=shop-").Check(Owned::kKafka, "ready", "bank-x", "delivery.kafka_topic");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kForbidden);
  EXPECT_EQ(refused.error().field, "delivery.kafka_topic");
  EXPECT_THAT(refused.error().message, HasSubstr("topic bank-x may not use the Kafka topic \"ready\""));
  EXPECT_THAT(refused.error().message, Not(HasSubstr("shop")));
}

TEST(OwnersTest, WhatIsNoRuleIsSaidAtTheStart) {
  for (const char* text : {"shop", "secret:shop", "secret=shop:x", "topic:shop=shop-", ":a=b", "secret:a=b,,"}) {
    const auto parsed = Owners::Parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().field, "push.owners");
  }
  EXPECT_TRUE(Owners::Parse("secret:a=shop-, kafka:b=shop-")) << "as in other lists";
}

}  // namespace
}  // namespace tocsin
