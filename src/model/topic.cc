#include "model/topic.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "base/text.h"

namespace tocsin {
namespace {

constexpr size_t kNameBytesMax = 256;
constexpr Millis kLeaseMax = std::chrono::hours(12);
constexpr Millis kPushLeaseMin = std::chrono::seconds(3);  // the server extends leases about once a second
constexpr Millis kBackoffBaseMax = std::chrono::hours(24);
constexpr Millis kBackoffMax = std::chrono::days(30);
constexpr Millis kRetentionMax = std::chrono::days(365);

Status InRange(std::string_view field, Millis value, Millis low, Millis high) {
  if (value >= low && value <= high) return {};
  return FailField(Code::kInvalidArgument, std::string(field), "{} is {} ms: the range is {} to {} ms", field,
                   value.count(), low.count(), high.count());
}

Status InRange(std::string_view field, uint32_t value, uint32_t low, uint32_t high) {
  if (value >= low && value <= high) return {};
  return FailField(Code::kInvalidArgument, std::string(field), "{} is {}: the range is {} to {}", field, value, low,
                   high);
}

/// C0, DEL and C1 (two bytes in UTF-8), of valid UTF-8.
bool HasControl(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < 0x20 || byte == 0x7F) return true;
    if (byte == 0xC2 && static_cast<uint8_t>(text[i + 1]) < 0xA0) return true;
  }
  return false;
}

}  // namespace

Status ValidateName(std::string_view field, std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    return FailField(Code::kInvalidArgument, std::string(field), "{} {}", field, why);
  };
  if (name.empty()) return refuse("is empty: it takes 1 to 256 bytes");
  if (name.size() > kNameBytesMax) {
    return FailField(Code::kInvalidArgument, std::string(field), "{} has {} bytes: the most is {}", field, name.size(),
                     kNameBytesMax);
  }
  if (!IsUtf8(name)) return refuse("is not valid UTF-8");
  if (HasControl(name)) return refuse("has a control character");
  return {};
}

void Apply(const TopicChange& change, Topic& topic) {
  topic.slots = change.slots.value_or(topic.slots);
  topic.capacity_jobs = change.capacity_jobs.value_or(topic.capacity_jobs);
  topic.capacity_bytes = change.capacity_bytes.value_or(topic.capacity_bytes);
  topic.lease = change.lease.value_or(topic.lease);
  topic.max_attempts = change.max_attempts.value_or(topic.max_attempts);
  topic.backoff_base = change.backoff_base.value_or(topic.backoff_base);
  topic.backoff_max = change.backoff_max.value_or(topic.backoff_max);
  topic.count_limit = change.count_limit.value_or(topic.count_limit);
  topic.retention = change.retention.value_or(topic.retention);
  topic.paused = change.paused.value_or(topic.paused);
  if (change.delivery) Apply(*change.delivery, topic.delivery);
}

Status ValidateTopicName(std::string_view name) {
  TOCSIN_TRY(ValidateName("topic", name));
  if (name.find_first_of("/{} ") == std::string::npos) return {};
  return FailField(Code::kInvalidArgument, "topic",
                   "topic has a '/', '{{', '}}' or space: they are not allowed in its name");
}

Status Validate(const Topic& topic) {
  TOCSIN_TRY(ValidateTopicName(topic.name));
  if (!std::has_single_bit(topic.slots) || topic.slots > kSlotsMax) {
    return FailField(Code::kInvalidArgument, "slots", "slots is {}: it takes a power of two from 1 to {}", topic.slots,
                     kSlotsMax);
  }
  TOCSIN_TRY(InRange("lease", topic.lease, Millis(1), kLeaseMax));
  TOCSIN_TRY(InRange("max_attempts", topic.max_attempts, 1, kAttemptsMax));
  TOCSIN_TRY(InRange("backoff_base", topic.backoff_base, Millis(0), kBackoffBaseMax));
  TOCSIN_TRY(InRange("backoff_max", topic.backoff_max, topic.backoff_base, kBackoffMax));
  TOCSIN_TRY(InRange("count_limit", topic.count_limit, 1, kCountMax));
  TOCSIN_TRY(InRange("retention", topic.retention, Millis(0), kRetentionMax));
  TOCSIN_TRY(Validate(topic.delivery));
  if (!topic.delivery.Pushes() || topic.lease >= kPushLeaseMin) return {};
  return FailField(Code::kInvalidArgument, "lease", "lease is {} ms: with a sink it takes at least {} ms",
                   topic.lease.count(), kPushLeaseMin.count());
}

Millis BackOff(const Topic& topic, uint32_t attempt, uint64_t seed) {
  // 2^34 ms is past the largest back-off, so a larger shift could only overflow.
  const uint32_t doublings = std::min(attempt == 0 ? 0 : attempt - 1, 34U);
  const int64_t base_ms = topic.backoff_base.count();
  const int64_t max_ms = topic.backoff_max.count();
  const int64_t rest_ms = base_ms > (max_ms >> doublings) ? max_ms : base_ms << doublings;
  const auto spread = static_cast<uint64_t>(rest_ms / 4) + 1;
  // Every product is below 2^53: a script of a store that has only doubles computes the same.
  constexpr uint64_t kPrime = 2'147'483'647;
  const uint64_t jitter = (seed % kPrime * 48'271 + uint64_t{attempt} * 69'621) % kPrime;
  return Millis(rest_ms + static_cast<int64_t>(jitter % spread));
}

}  // namespace tocsin
