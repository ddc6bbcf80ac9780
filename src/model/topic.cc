#include "model/topic.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "base/text.h"
#include "model/job.h"

namespace tocsin {
namespace {

constexpr Millis kPushLeaseMin = std::chrono::seconds(3);  // the server extends leases about once a second
constexpr uint64_t kAnyNumber = std::numeric_limits<int64_t>::max();

constexpr uint64_t kAlertAttemptsMax = 1'000'000;  // over kAttemptsMax: an alert that never comes

constexpr uint64_t Ms(Millis time) { return static_cast<uint64_t>(time.count()); }

constexpr uint64_t kAlertTimeMax = Ms(std::chrono::days(3650));

uint64_t ToNumber(uint64_t value) { return value; }
uint64_t ToNumber(Millis value) { return Ms(value); }

template <class T>
T FromNumber(uint64_t value) {
  if constexpr (std::is_same_v<T, Millis>) {
    return Millis(static_cast<int64_t>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <auto kMember>
constexpr TopicSetting Setting(std::string_view name, std::string_view flag, SettingKind kind, uint64_t min,
                               uint64_t max, std::string_view doc) {
  return {name,
          flag,
          kind,
          min,
          max,
          doc,
          [](const Topic& topic) { return ToNumber(topic.*kMember); },
          [](Topic& topic, uint64_t value) {
            using T = std::remove_reference_t<decltype(topic.*kMember)>;
            topic.*kMember = FromNumber<T>(value);
          }};
}

template <auto kMember>
constexpr TopicSetting AlertSetting(std::string_view name, std::string_view flag, SettingKind kind, uint64_t max,
                                    std::string_view doc) {
  return {name,
          flag,
          kind,
          0,
          max,
          doc,
          [](const Topic& topic) { return ToNumber(topic.alerts.*kMember); },
          [](Topic& topic, uint64_t value) {
            using T = std::remove_reference_t<decltype(topic.alerts.*kMember)>;
            topic.alerts.*kMember = FromNumber<T>(value);
          }};
}

constexpr TopicSetting kSettings[] = {
    Setting<&Topic::slots>("slots", "slots", SettingKind::kNumber, 1, kSlotsMax,
                           "Partitions, a power of two. Fixed when the topic is created."),
    Setting<&Topic::capacity_jobs>("capacity_jobs", "capacity-jobs", SettingKind::kNumber, 0, kAnyNumber,
                                   "The most jobs the topic holds: scheduled, leased and dead. 0: no limit."),
    Setting<&Topic::capacity_bytes>("capacity_bytes", "capacity-bytes", SettingKind::kBytes, 0, kAnyNumber,
                                    "The most bytes of their ids, keys, headers and payloads. 0: no limit."),
    Setting<&Topic::lease>("lease_ms", "lease", SettingKind::kMillis, 1, Ms(kLeaseMax),
                           "How long a consumer has to settle a delivery, unless its reserve asks for another time."),
    Setting<&Topic::max_attempts>("max_attempts", "attempts", SettingKind::kNumber, 1, kAttemptsMax,
                                  "Deliveries before a job becomes a dead letter, unless the job has its own number."),
    Setting<&Topic::backoff_base>("backoff_base_ms", "backoff", SettingKind::kMillis, 0, Ms(std::chrono::hours(24)),
                                  "How long a job rests after its first failed attempt. Each further one doubles it."),
    Setting<&Topic::backoff_max>("backoff_max_ms", "backoff-max", SettingKind::kMillis, 0, Ms(std::chrono::days(30)),
                                 "The longest rest, before a jitter of up to a quarter. At least backoff_base_ms."),
    Setting<&Topic::count_limit>("count_limit", "count", SettingKind::kNumber, 1, kCountMax,
                                 "Events that a count trigger waits for, unless the job has its own number."),
    Setting<&Topic::retention>("retention_ms", "retention", SettingKind::kMillis, 0, Ms(std::chrono::days(365)),
                               "How long a done or cancelled job can still be looked up."),
    Setting<&Topic::paused>("paused", "paused", SettingKind::kFlag, 0, 1,
                            "Whether delivery is stopped. Everything else works."),
    AlertSetting<&AlertLimits::due_jobs>("alert_due_jobs", "alert-due-jobs", SettingKind::kNumber, kAnyNumber,
                                         "An alert is raised if more due jobs wait. 0: the node's alerts.due_jobs."),
    AlertSetting<&AlertLimits::late>(
        "alert_late_ms", "alert-late", SettingKind::kMillis, kAlertTimeMax,
        "An alert is raised if the first due job waits longer. 0: the node's alerts.late."),
    AlertSetting<&AlertLimits::stalled>(
        "alert_stalled_ms", "alert-stalled", SettingKind::kMillis, kAlertTimeMax,
        "An alert is raised if due jobs wait and none is delivered for so long. 0: the node's alerts.stalled."),
    AlertSetting<&AlertLimits::attempts>("alert_attempts", "alert-attempts", SettingKind::kNumber, kAlertAttemptsMax,
                                         "An alert is raised if a job fails so often. 0: the node's alerts.attempts."),
    AlertSetting<&AlertLimits::push_failures>(
        "alert_push_failures", "alert-push-failures", SettingKind::kNumber, kAnyNumber,
        "An alert is raised if so many pushes in a row fail. 0: the node's alerts.push_failures."),
    AlertSetting<&AlertLimits::dead_jobs>("alert_dead_jobs", "alert-dead-jobs", SettingKind::kNumber, kAnyNumber,
                                          "An alert is raised if there are more dead letters. 0: the node's "
                                          "alerts.dead_jobs."),
    AlertSetting<&AlertLimits::future_jobs>(
        "alert_future_jobs", "alert-future-jobs", SettingKind::kNumber, kAnyNumber,
        "An alert is raised if a coming minute holds more jobs, more than any drained. 0: the "
        "node's alerts.future_jobs."),
    AlertSetting<&AlertLimits::off>("alerts_off", "alerts-off", SettingKind::kFlag, 1,
                                    "Whether the topic raises no alerts at all."),
};

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

std::span<const TopicSetting> TopicSettings() { return kSettings; }

size_t SettingsToKeep(const Topic& topic, std::span<const TopicSetting> settings, size_t least) {
  const Topic defaults;
  size_t keep = settings.size();
  while (keep > least && settings[keep - 1].get(topic) == settings[keep - 1].get(defaults)) --keep;
  return keep;
}

const TopicSetting* FindTopicSetting(std::string_view name) {
  const auto* const found = std::ranges::find(kSettings, name, &TopicSetting::name);
  return found == std::end(kSettings) ? nullptr : found;
}

Status CheckRange(const TopicSetting& setting, uint64_t value) {
  if (value >= setting.min && value <= setting.max) return {};
  return FailField(Code::kInvalidArgument, std::string(setting.name), "{} is {}: the range is {} to {}", setting.name,
                   value, setting.min, setting.max);
}

TopicChange& TopicChange::Set(std::string_view name, uint64_t value) {
  const TopicSetting* const setting = FindTopicSetting(name);
  TOCSIN_CHECK(setting != nullptr);
  settings.emplace_back(setting, value);
  return *this;
}

void Apply(const TopicChange& change, Topic& topic) {
  for (const auto& [setting, value] : change.settings) setting->set(topic, value);
  if (change.delivery) Apply(*change.delivery, topic.delivery);
}

Status ValidateTopicName(std::string_view name) {
  TOCSIN_TRY(ValidateName("topic", name));
  if (name.find_first_of("/{} ") == std::string::npos) return {};
  return FailField(Code::kInvalidArgument, "topic",
                   "topic has a '/', '{{', '}}' or space: they are not allowed in its name");
}

std::unexpected<Error> NoSuchTopic(std::string_view topic) {
  return FailField(Code::kTopicNotFound, "topic", "there is no topic {}", Shown(topic));
}

std::unexpected<Error> TooManyTopics(uint64_t most) {
  return FailField(Code::kOverCapacity, "topic", "there may be no more topics than {} (limits.topics)", most);
}

Status Validate(const Topic& topic) {
  TOCSIN_TRY(ValidateTopicName(topic.name));
  for (const TopicSetting& setting : kSettings) TOCSIN_TRY(CheckRange(setting, setting.get(topic)));
  if (!std::has_single_bit(topic.slots)) {
    return FailField(Code::kInvalidArgument, "slots", "slots is {}: it takes a power of two", topic.slots);
  }
  if (topic.backoff_max < topic.backoff_base) {
    return FailField(Code::kInvalidArgument, "backoff_max_ms", "backoff_max_ms is {}: it is below backoff_base_ms, {}",
                     topic.backoff_max.count(), topic.backoff_base.count());
  }
  TOCSIN_TRY(Validate(topic.delivery));
  if (!topic.delivery.Pushes() || topic.lease >= kPushLeaseMin) return {};
  return FailField(Code::kInvalidArgument, "lease_ms", "lease_ms is {}: with a sink it takes at least {}",
                   topic.lease.count(), kPushLeaseMin.count());
}

Millis BackOff(const Topic& topic, uint32_t attempt, uint64_t seed) {
  const uint32_t doublings = std::min(attempt == 0 ? 0 : attempt - 1, back_off::kDoublingsMax);
  const int64_t base_ms = topic.backoff_base.count();
  const int64_t max_ms = topic.backoff_max.count();
  const int64_t rest_ms = base_ms > (max_ms >> doublings) ? max_ms : base_ms << doublings;
  const auto spread = static_cast<uint64_t>(rest_ms / back_off::kJitterPart) + 1;
  using namespace back_off;
  const uint64_t jitter = (seed % kPrime * kSeedFactor + uint64_t{attempt} * kAttemptFactor) % kPrime;
  return Millis(rest_ms + static_cast<int64_t>(jitter % spread));
}

}  // namespace tocsin
