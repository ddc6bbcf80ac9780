#include "sinks/rabbitmq/codec.h"

#include <gmock/gmock.h>

namespace tocsin::rabbitmq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Kinds(const amqp_frame_t& frame) {
  switch (frame.frame_type) {
    case AMQP_FRAME_METHOD:
      return amqp_method_name(frame.payload.method.id);
    case AMQP_FRAME_HEADER:
      return fmt::format("header {}", frame.payload.properties.body_size);
    case AMQP_FRAME_BODY:
      return fmt::format("body {}", frame.payload.body_fragment.len);
    case AMQP_FRAME_HEARTBEAT:
      return "heartbeat";
    default:
      return fmt::format("type {}", frame.frame_type);
  }
}

/// What the frames in `bytes` are, which arrive in pieces.
std::vector<std::string> Decode(Decoder& decoder, std::string_view bytes, size_t piece) {
  std::vector<std::string> frames;
  while (!bytes.empty()) {
    const Status fed = decoder.Feed(bytes.substr(0, piece), [&frames](const amqp_frame_t& frame) {
      frames.push_back(fmt::format("{}:{}", frame.channel, Kinds(frame)));
      return true;
    });
    EXPECT_TRUE(fed) << fed.error().message;
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return frames;
}

amqp_basic_publish_t PublishTo(std::string_view routing_key) {
  return {.ticket = 0, .exchange = BytesOf({}), .routing_key = BytesOf(routing_key), .mandatory = 1, .immediate = 0};
}

TEST(RabbitmqCodec, FramesAreFoundInPiecesOfAnySize) {
  Encoder encoder;
  std::string bytes;
  encoder.Method(bytes, 7, AMQP_CHANNEL_OPEN_METHOD, amqp_channel_open_t{.out_of_band = BytesOf({})});
  encoder.Heartbeat(bytes);
  ASSERT_TRUE(encoder.Publish(bytes, 7, PublishTo("q"), {}, std::string(10'000, 'x')));
  ASSERT_TRUE(encoder.Publish(bytes, 9, PublishTo("q"), {}, ""));
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}, bytes.size()}) {
    Decoder decoder;
    EXPECT_THAT(
        Decode(decoder, bytes, piece),
        ElementsAre("7:AMQP_CHANNEL_OPEN_METHOD", "0:heartbeat", "7:AMQP_BASIC_PUBLISH_METHOD", "7:header 10000",
                    "7:body 4088", "7:body 4088", "7:body 1824", "9:AMQP_BASIC_PUBLISH_METHOD", "9:header 0"))
        << piece;
  }
}

TEST(RabbitmqCodec, NothingIsFoundAfterItWasToldToStop) {
  Encoder encoder;
  std::string bytes;
  for (int i = 0; i < 2; ++i) {
    encoder.Method(bytes, 7, AMQP_CHANNEL_OPEN_METHOD, amqp_channel_open_t{.out_of_band = BytesOf({})});
  }
  Decoder decoder;
  int frames = 0;
  EXPECT_TRUE(decoder.Feed(bytes, [&frames](const amqp_frame_t&) {
    ++frames;
    return false;
  }));
  EXPECT_EQ(frames, 1);
}

TEST(RabbitmqCodec, PropertiesThatDoNotFitLeaveNothingBehind) {
  Encoder encoder;
  std::string bytes = "before";
  const std::string large(5000, 'h');
  amqp_table_entry_t entry = TextField("large", large);
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG;
  properties.headers = {.num_entries = 1, .entries = &entry};
  const Status small = encoder.Publish(bytes, 1, PublishTo("q"), properties, "body");
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().code, Code::kTooLarge);
  EXPECT_THAT(small.error().message, HasSubstr("frame of 4096 bytes"));
  EXPECT_EQ(bytes, "before");

  encoder.SetFrameMax(8192);
  EXPECT_TRUE(encoder.Publish(bytes, 1, PublishTo("q"), properties, "body"));
}

TEST(RabbitmqCodec, OtherProtocolsAreRefused) {
  for (const char* text : {"HTTP/1.1 400 Bad Request\r\n\r\n", "\x15\x03\x01\xff\xff\xff\xff\xff\xff"}) {
    Decoder decoder;
    const Status fed = decoder.Feed(text, [](const amqp_frame_t&) { return true; });
    ASSERT_FALSE(fed) << text;
    EXPECT_THAT(fed.error().message, HasSubstr("it does not speak AMQP 0-9-1"));
  }
}

TEST(RabbitmqCodec, AnAnswerThatNamesAnotherVersionIsAFrameOfItsOwn) {
  Encoder encoder;
  std::string bytes;
  encoder.ProtocolHeader(bytes);
  Decoder decoder;
  EXPECT_THAT(Decode(decoder, bytes, 8), ElementsAre(fmt::format("0:type {}", kProtocolHeaderFrame)));
}

}  // namespace
}  // namespace tocsin::rabbitmq
