#include "sinks/kafka/verdict.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace tocsin::kafka {
namespace {

constexpr size_t kTopicNameMax = 249;

bool IsRefusal(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:  // for kafka.message_size; see IsOfBatch for what a broker says
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:     // a name that no topic can have
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:      // such as one without a key for a compacted topic
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:   // the topic's rule for times, which another attempt meets again
      return true;
    default:  // a topic may be made later, a right granted, a broker come back
      return false;
  }
}

}  // namespace

Delivered VerdictOf(rd_kafka_resp_err_t error, Millis timeout, std::string_view trouble) {
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  Delivered delivered{.outcome = IsRefusal(error) ? DeliverOutcome::kRefused : DeliverOutcome::kRetry};
  switch (error) {
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
      delivered.reason = fmt::format("Kafka has not confirmed within {} ms", timeout.count());
      break;
    case RD_KAFKA_RESP_ERR__PURGE_QUEUE:
    case RD_KAFKA_RESP_ERR__PURGE_INFLIGHT:
      delivered.reason = "the connection to Kafka is made anew";
      break;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
      delivered.reason = "the message is larger than kafka.message_size";
      break;
    default:
      delivered.reason = fmt::format("Kafka: {}", rd_kafka_err2str(error));
  }
  if (delivered.outcome == DeliverOutcome::kRetry && !trouble.empty()) {
    delivered.reason += fmt::format("; the last trouble was: {}", trouble);
  }
  return delivered;
}

bool IsOfBatch(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE || error == RD_KAFKA_RESP_ERR_INVALID_RECORD ||
         error == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP;
}

Delivered VerdictInBatch(rd_kafka_resp_err_t error, bool alone) {
  const bool large = error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
  const auto retry = [](std::string reason) {
    return Delivered{.outcome = DeliverOutcome::kRetry, .reason = std::move(reason)};
  };
  if (!alone && large) {
    return retry(
        "Kafka: a batch of messages is too large for the topic: its max.message.bytes is below kafka.message_size");
  }
  if (!alone) return retry(fmt::format("Kafka, of a batch with this message: {}", rd_kafka_err2str(error)));
  if (!large) return VerdictOf(error, Millis(0), "");
  return {.outcome = DeliverOutcome::kRefused, .reason = "Kafka: the message is too large for its topic"};
}

Status CheckTopicName(std::string_view name, std::string_view shown) {
  const auto bad = [shown](std::string_view why) {
    return Fail(Code::kInvalidArgument, "\"{}\" is no name of a topic of Kafka: {}", Shown(shown), why);
  };
  if (name.empty()) return bad("it is empty");
  if (name.size() > kTopicNameMax) return bad("it has more than 249 bytes");
  if (name == "." || name == "..") return bad("it is . or ..");
  const bool clean = std::ranges::all_of(
      name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; });
  if (!clean) return bad("it may have letters, digits, \".\", \"_\" and \"-\" alone");
  return {};
}

}  // namespace tocsin::kafka
