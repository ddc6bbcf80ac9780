#include "sinks/kafka/verdict.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace tocsin::kafka {
namespace {

constexpr size_t kTopicNameMax = 249;

/// Others pass: a topic may be made later, a right granted, a broker come back.
constexpr rd_kafka_resp_err_t kRefusals[] = {
    RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION,    // a name that no topic can have
    RD_KAFKA_RESP_ERR_INVALID_RECORD,     // such as one without a key for a compacted topic
    RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP,  // the topic's rule for times, which does not change
};

/// What librdkafka says of a message that found no broker to go to.
constexpr rd_kafka_resp_err_t kAway[] = {
    RD_KAFKA_RESP_ERR__MSG_TIMED_OUT,
    RD_KAFKA_RESP_ERR__PURGE_QUEUE,
    RD_KAFKA_RESP_ERR__TRANSPORT,
    RD_KAFKA_RESP_ERR__FATAL,
};
constexpr Millis kBesideOthersRest{200};
constexpr Millis kApart{10};  // longer than librdkafka waits for a batch to fill
constexpr size_t kPlacesMax = 200;

/// The message itself is not blamed.
Delivered Spared(std::string reason, size_t place) {
  Delivered delivered = Unsent(std::move(reason));
  delivered.delay = kBesideOthersRest + static_cast<int64_t>(std::min(place, kPlacesMax)) * kApart;
  return delivered;
}

}  // namespace

Delivered VerdictOf(rd_kafka_resp_err_t error, Millis timeout, std::string_view last_error, bool unsent) {
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  if (error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) return Refuse("the message is larger than kafka.message_size");
  std::string reason = fmt::format("Kafka: {}", rd_kafka_err2str(error));
  if (std::ranges::find(kRefusals, error) != std::end(kRefusals)) return Refuse(std::move(reason));
  if (error == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT) {
    reason = fmt::format("Kafka has not confirmed within {} ms", timeout.count());
  } else if (error == RD_KAFKA_RESP_ERR__PURGE_QUEUE || error == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT) {
    reason = "the connection to Kafka is made again";
  }
  if (!last_error.empty()) reason += fmt::format("; the last error was: {}", last_error);
  const bool away = std::ranges::find(kAway, error) != std::end(kAway);
  return away && unsent ? Unsent(std::move(reason)) : Retry(std::move(reason));
}

bool IsOfBatch(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE || error == RD_KAFKA_RESP_ERR_INVALID_RECORD ||
         error == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP;
}

Delivered VerdictInBatch(rd_kafka_resp_err_t error, InBatch message) {
  const bool large = error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
  if (message.alone) {
    return large ? Refuse("Kafka: the message is too large for its topic") : VerdictOf(error, Millis(0), "");
  }
  std::string reason = fmt::format("Kafka, of a batch with this message: {}", rd_kafka_err2str(error));
  if (large) {
    reason = "Kafka: a batch of messages is too large for the topic: its max.message.bytes is below kafka.message_size";
  }
  const bool keys_matter = error == RD_KAFKA_RESP_ERR_INVALID_RECORD && (message.keyless || message.others_keyless);
  const bool spared = keys_matter ? !message.keyless : message.other_likelier;
  return spared ? Spared(std::move(reason), message.place) : Retry(std::move(reason));
}

Status CheckTopicName(std::string_view name, std::string_view shown) {
  const auto bad = [shown](std::string_view why) {
    return Fail(Code::kInvalidArgument, "\"{}\" is not a valid name of a Kafka topic: {}", Shown(shown), why);
  };
  if (name.empty()) return bad("it is empty");
  if (name.size() > kTopicNameMax) return bad("it has more than 249 bytes");
  if (name == "." || name == "..") return bad("it is . or ..");
  const bool clean = std::ranges::all_of(
      name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; });
  if (!clean) return bad("it may have only letters, digits, \".\", \"_\" and \"-\"");
  return {};
}

}  // namespace tocsin::kafka
