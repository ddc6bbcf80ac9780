// A topic: a named queue with its own rules, and the table of its settings. Pure values; Validate checks the limits
// before anything is stored.
//
// To add a setting: a member of Topic below, and a row at the end of kSettings in topic.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "base/time.h"
#include "model/delivery.h"

namespace tocsin {

/// Events that one trigger can wait for. They are kept until it fires, and a job has to fit into a journal segment.
constexpr uint32_t kCountMax = 100'000;
constexpr uint32_t kAttemptsMax = 1000;

/// When a topic raises alerts (core/alert_rules.h). 0: as the node says.
struct AlertLimits {
  uint64_t due_jobs = 0;
  Millis late{0};
  Millis stalled{0};
  uint32_t attempts = 0;
  uint64_t push_failures = 0;  // in a row
  uint64_t dead_jobs = 0;
  uint64_t future_jobs = 0;
  bool off = false;  // it raises none

  friend bool operator==(const AlertLimits&, const AlertLimits&) = default;
};

struct Topic {
  std::string name;
  uint32_t slots = 8;
  uint64_t capacity_jobs = 0;
  uint64_t capacity_bytes = 0;
  Millis lease{30'000};
  uint32_t max_attempts = 16;
  Millis backoff_base{1'000};
  Millis backoff_max{3'600'000};
  uint32_t count_limit = 1;
  Millis retention{0};
  bool paused = false;
  AlertLimits alerts;
  uint64_t version = 0;  // rises with each change; set by the service
  Delivery delivery;     // pull, or a sink

  friend bool operator==(const Topic&, const Topic&) = default;
};

/// A topic of this name with the defaults.
inline Topic DefaultTopic(std::string name) {
  Topic topic;
  topic.name = std::move(name);
  return topic;
}

enum class SettingKind : uint8_t { kNumber, kBytes, kMillis, kFlag };

/// One setting of a topic. The table of them drives validation, both stores' encodings, every door, the flags and views
/// of the command line, the OpenAPI document and docs/reference.md. Values travel as uint64_t: a count, bytes,
/// milliseconds, or 0 and 1.
struct TopicSetting {
  std::string_view name;  // on every wire; the name of a duration ends with _ms
  std::string_view flag;  // on the command line
  SettingKind kind;
  uint64_t min;
  uint64_t max;
  std::string_view doc;
  uint64_t (*get)(const Topic& topic);
  void (*set)(Topic& topic, uint64_t value);  // `value` is in range
};

/// In the order in which the stores keep them: a new one goes to the end, and none is ever removed.
std::span<const TopicSetting> TopicSettings();
/// How many of `settings` a store has to keep of this topic, `least` at least: those that follow have their defaults.
/// So a program that does not know the last ones reads the topics that do not use them.
size_t SettingsToKeep(const Topic& topic, std::span<const TopicSetting> settings, size_t least);
/// Null if there is none of that name.
const TopicSetting* FindTopicSetting(std::string_view name);
/// kInvalidArgument, with the range, if the setting cannot have this value.
Status CheckRange(const TopicSetting& setting, uint64_t value);

/// A change of a topic's settings: what is not named keeps its value.
struct TopicChange {
  std::vector<std::pair<const TopicSetting*, uint64_t>> settings;
  std::optional<DeliveryChange> delivery;

  /// For callers that know the name and that the value is in range.
  TopicChange& Set(std::string_view name, uint64_t value);
};
void Apply(const TopicChange& change, Topic& topic);

/// The answer to a call for a topic that does not exist.
std::unexpected<Error> NoSuchTopic(std::string_view topic);
/// The answer to a call that would create one more than the most that there may be.
std::unexpected<Error> TooManyTopics(uint64_t most);

Status ValidateTopicName(std::string_view name);
Status Validate(const Topic& topic);

/// 1-256 bytes without control characters: names of topics, ids, keys, events.
Status ValidateName(std::string_view field, std::string_view name);

/// The longest name of anything, in bytes.
constexpr size_t kNameBytesMax = 256;

/// The numbers of BackOff, for stores that compute it in a script.
namespace back_off {
constexpr uint32_t kDoublingsMax = 34;  // 2^34 ms is past the largest back-off: a larger shift could only overflow
constexpr int64_t kJitterPart = 4;
// Every product is below 2^53: a script that has only doubles computes the same.
constexpr uint64_t kPrime = 2'147'483'647;
constexpr uint64_t kSeedFactor = 48'271;
constexpr uint64_t kAttemptFactor = 69'621;
}  // namespace back_off

/// How long a job rests after `attempt` failed: base * 2^(attempt - 1), capped, plus up to a quarter of jitter that is
/// drawn from `seed`, so that a replay waits as long as the first time.
Millis BackOff(const Topic& topic, uint32_t attempt, uint64_t seed);

}  // namespace tocsin
