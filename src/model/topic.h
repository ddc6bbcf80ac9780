// A topic: a named queue with its own rules. Pure values; limits are checked by Validate before anything is stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id.h"
#include "base/result.h"
#include "base/time.h"
#include "model/delivery.h"

namespace tocsin {

/// Events that one trigger can wait for. They are kept until it fires, and a job has to fit into a journal segment.
constexpr uint32_t kCountMax = 100'000;
constexpr uint32_t kAttemptsMax = 1000;

struct Topic {
  std::string name;
  uint32_t slots = 8;             // a power of two, fixed when the topic is created
  uint64_t capacity_jobs = 0;     // pending, leased and dead together; 0 = no limit
  uint64_t capacity_bytes = 0;    // of their ids, keys, headers and payloads; 0 = no limit
  Millis lease{30'000};           // unless a reserve names its own
  uint32_t max_attempts = 16;     // unless the job names its own
  Millis backoff_base{1'000};     // after attempt n: base * 2^(n - 1) ...
  Millis backoff_max{3'600'000};  // ... up to this, plus a jitter of up to a quarter
  uint32_t count_limit = 1;       // events that a count trigger waits for, unless the job names its own
  Millis retention{0};            // how long finished and cancelled jobs can still be looked up
  bool paused = false;            // nothing is delivered; everything else works
  uint64_t version = 0;           // rises with each change; set by the service
  Delivery delivery;              // pull, or a sink

  friend bool operator==(const Topic&, const Topic&) = default;
};

/// A topic of this name with the defaults.
inline Topic DefaultTopic(std::string name) {
  Topic topic;
  topic.name = std::move(name);
  return topic;
}

/// A change of a topic's settings: what is not named keeps its value.
struct TopicChange {
  std::optional<uint32_t> slots;
  std::optional<uint64_t> capacity_jobs;
  std::optional<uint64_t> capacity_bytes;
  std::optional<Millis> lease;
  std::optional<uint32_t> max_attempts;
  std::optional<Millis> backoff_base;
  std::optional<Millis> backoff_max;
  std::optional<uint32_t> count_limit;
  std::optional<Millis> retention;
  std::optional<bool> paused;
  std::optional<DeliveryChange> delivery;
};
void Apply(const TopicChange& change, Topic& topic);

Status ValidateTopicName(std::string_view name);
Status Validate(const Topic& topic);

/// 1-256 bytes without control characters: names of topics, ids, keys, events.
Status ValidateName(std::string_view field, std::string_view name);

/// How long a job rests after `attempt` failed: base * 2^(attempt - 1), capped, plus up to a quarter of jitter that is
/// drawn from `seed`, so that a replay waits as long as the first time.
Millis BackOff(const Topic& topic, uint32_t attempt, uint64_t seed);

}  // namespace tocsin
