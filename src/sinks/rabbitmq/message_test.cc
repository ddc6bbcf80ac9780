#include "sinks/rabbitmq/message.h"

#include <map>

#include <gmock/gmock.h>

namespace tocsin::rabbitmq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Topic TopicWith(std::map<std::string, std::string, std::less<>> settings) {
  Topic topic = DefaultTopic("orders");
  topic.delivery = {.sink = "rabbitmq", .settings = std::move(settings)};
  return topic;
}

JobView Job() {
  JobView job;
  job.own_id = "order-7";
  job.key = "customer 42";
  job.attempt = 3;
  job.due = FromMs(1'700'000'000'999);
  job.token = {.slot = 3, .handle = 4, .fence = 5};
  job.headers = {{"trace", "00-4bf9"}, {"Content-Type", "application/json"}, {"tocsin-probe", "true"}};
  job.payload = "payload";
  return job;
}

/// A message as the broker reads it.
struct Read {
  std::string exchange, routing_key, body, message_id, content_type;
  bool mandatory = false;
  int delivery_mode = 0;
  uint64_t timestamp = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<Token> token;
};

Read ReadBack(Message& message, const JobView& job) {
  Encoder encoder;
  encoder.SetFrameMax(128 << 10);
  std::string bytes;
  const Status written = message.Append(encoder, bytes, 5, job);
  EXPECT_TRUE(written) << written.error().message;
  Read read;
  Decoder decoder;
  EXPECT_TRUE(decoder.Feed(bytes, [&read](const amqp_frame_t& frame) {
    EXPECT_EQ(frame.channel, 5);
    if (frame.frame_type == AMQP_FRAME_METHOD) {
      const auto& publish = *static_cast<const amqp_basic_publish_t*>(frame.payload.method.decoded);
      read.exchange = TextOf(publish.exchange);
      read.routing_key = TextOf(publish.routing_key);
      read.mandatory = publish.mandatory != 0;
    } else if (frame.frame_type == AMQP_FRAME_HEADER) {
      const auto& properties = *static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded);
      read.message_id = TextOf(properties.message_id);
      read.content_type = TextOf(properties.content_type);
      read.delivery_mode = properties.delivery_mode;
      read.timestamp = properties.timestamp;
      for (int i = 0; i < properties.headers.num_entries; ++i) {
        const amqp_table_entry_t& entry = properties.headers.entries[i];
        read.headers.emplace_back(TextOf(entry.key), TextOf(entry.value.value.bytes));
      }
      if (const auto name = NameOf(properties)) read.token = name->token;
    } else {
      read.body += TextOf(frame.payload.body_fragment);
    }
    return true;
  }));
  return read;
}

TEST(RabbitmqMessage, AJobIsPersistentMandatoryAndNamed) {
  Message message = Message::Make(TopicWith({{"exchange", "jobs"}, {"routing_key", "{topic}.{header:trace}"}})).value();
  const Read read = ReadBack(message, Job());
  EXPECT_EQ(read.exchange, "jobs");
  EXPECT_EQ(read.routing_key, "orders.00-4bf9");
  EXPECT_TRUE(read.mandatory);
  EXPECT_EQ(read.delivery_mode, 2);
  EXPECT_EQ(read.message_id, "order-7");
  EXPECT_EQ(read.content_type, "application/json");
  EXPECT_EQ(read.timestamp, 1'700'000'000);
  EXPECT_EQ(read.body, "payload");
  EXPECT_EQ(read.token, (Token{.slot = 3, .handle = 4, .fence = 5}));
  EXPECT_THAT(read.headers,
              ElementsAre(Pair("tocsin-topic", "orders"), Pair("tocsin-job-id", "order-7"), Pair("tocsin-attempt", "3"),
                          Pair("tocsin-due-ms", "1700000000999"), Pair("tocsin-token", TokenText(Job().token)),
                          Pair("tocsin-key", "customer 42"), Pair("trace", "00-4bf9"),
                          Pair("Content-Type", "application/json"), Pair("tocsin-probe", "true")));
}

TEST(RabbitmqMessage, NothingOfOneJobIsLeftForTheNext) {
  Message message = Message::Make(TopicWith({})).value();
  ReadBack(message, Job());
  JobView plain;
  plain.uid = 77;
  const Read read = ReadBack(message, plain);
  EXPECT_EQ(read.exchange, "");
  EXPECT_EQ(read.routing_key, "ready_orders");
  EXPECT_EQ(read.content_type, "");
  EXPECT_EQ(read.message_id, UidText(77));
  EXPECT_EQ(read.body, "");
  EXPECT_EQ(read.headers.size(), 5) << "no key, no headers of its own";
}

TEST(RabbitmqMessage, WhatAmqpCannotCarryIsSaid) {
  Message message = Message::Make(TopicWith({{"routing_key", "{key}"}, {"exchange", "{header:x}"}})).value();
  const auto error_of = [&message](const JobView& job) {
    Encoder encoder;
    std::string bytes;
    const Status written = message.Append(encoder, bytes, 1, job);
    EXPECT_EQ(bytes.empty(), !written);
    return written ? "no error" : written.error().message;
  };
  const std::string longest(255, 'n');
  const std::string too_long(256, 'n');
  JobView job = Job();
  job.key = longest;
  EXPECT_EQ(error_of(job), "no error");
  job.key = too_long;
  EXPECT_EQ(error_of(job), "its routing key has 256 bytes: AMQP takes 255");
  job = Job();
  job.headers = {{"x", too_long}};
  EXPECT_EQ(error_of(job), "its exchange has 256 bytes: AMQP takes 255");
  job.headers = {{too_long, "x"}};
  EXPECT_EQ(error_of(job), "the name of a header has 256 bytes: AMQP takes 255");
  for (const char* routing : {"CC", "BCC"}) {
    job.headers = {{routing, "x"}};
    EXPECT_EQ(error_of(job), fmt::format("it has the header {}, by which RabbitMQ would route it", routing));
  }
  const std::string large(5000, 'l');
  job.headers = {{"large", large}};
  EXPECT_THAT(error_of(job), HasSubstr("its headers do not fit into a frame"));
}

TEST(RabbitmqMessage, WhatBelongsToOtherTopicsIsNotPublishedTo) {
  const Owners owners = Owners::Parse("exchange:shop*=shop-,queue:ready_shop*=shop-").value();
  const auto field = [&owners](std::map<std::string, std::string, std::less<>> settings) {
    const auto made = Message::Make(TopicWith(std::move(settings)), &owners);  // of the topic orders
    return made ? "" : made.error().field;
  };
  EXPECT_EQ(field({}), "");
  EXPECT_EQ(field({{"exchange", "shop"}}), "delivery.exchange");
  EXPECT_EQ(field({{"exchange", "shop"}, {"routing_key", "{key}"}}), "delivery.exchange");
  EXPECT_EQ(field({{"routing_key", "ready_shop-orders"}}), "delivery.routing_key");
  EXPECT_EQ(field({{"exchange", "own"}, {"routing_key", "ready_shop-orders"}}), "") << "that is no queue";
  EXPECT_EQ(field({{"routing_key", "{key}"}}), "") << "the jobs will tell";

  for (const auto& [setting, key] : {std::pair{"exchange", "shop"}, std::pair{"routing_key", "ready_shop-orders"}}) {
    Message message = Message::Make(TopicWith({{setting, "{key}"}}), &owners).value();
    Encoder encoder;
    std::string bytes;
    JobView job = Job();
    job.key = key;
    const Status written = message.Append(encoder, bytes, 1, job);
    ASSERT_FALSE(written) << setting;
    EXPECT_THAT(written.error().message, testing::HasSubstr("may not use"));
    EXPECT_EQ(bytes, "");
    job.key = "own";
    EXPECT_TRUE(message.Append(encoder, bytes, 1, job));
  }
}

TEST(RabbitmqMessage, AJobThatACountMadeReadyHasNoDueTime) {
  Message message = Message::Make(TopicWith({})).value();
  JobView job = Job();
  job.due = kNever;
  const Read read = ReadBack(message, job);
  EXPECT_THAT(read.headers, testing::Not(testing::Contains(Pair("tocsin-due-ms", testing::_))));
  EXPECT_EQ(read.timestamp, 0);
}

TEST(RabbitmqMessage, AnIdOfTheGreatestLengthIsInTheHeaderAlone) {
  Message message = Message::Make(TopicWith({})).value();
  const std::string longest(256, 'i');
  JobView job = Job();
  job.own_id = longest;
  const Read read = ReadBack(message, job);
  EXPECT_EQ(read.message_id, "");
  EXPECT_EQ(read.headers[1].second, longest);
  EXPECT_EQ(read.token, job.token);
}

TEST(RabbitmqMessage, ATemplateThatCannotBeReadNamesItsSetting) {
  EXPECT_EQ(Message::Make(TopicWith({{"exchange", "{nope}"}})).error().field, "delivery.exchange");
  EXPECT_EQ(Message::Make(TopicWith({{"routing_key", "{"}})).error().field, "delivery.routing_key");
}

}  // namespace
}  // namespace tocsin::rabbitmq
