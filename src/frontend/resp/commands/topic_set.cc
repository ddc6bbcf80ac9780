#include <algorithm>

#include "base/check.h"
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostMs = kMost / 1'000'000;
constexpr std::string_view kSwitch[] = {"false", "true"};

/// What else holds for the number is the topic's own to check.
template <auto kMember, int64_t kMin = 0, int64_t kMax = kMost>
Status Take(TopicChange& change, std::string_view word, Values values) {
  return Put(change.*kMember, Number(word, values[0], kMin, kMax));
}

Status TakePaused(TopicChange& change, std::string_view word, Values values) {
  bool paused = false;
  TOCSIN_TRY(PutChoice(paused, word, values[0], kSwitch));
  change.paused = paused;
  return {};
}

DeliveryChange& DeliveryOf(TopicChange& change) {
  if (!change.delivery) change.delivery.emplace();
  return *change.delivery;
}

/// "pull" and the sinks.
const std::vector<std::string_view>& DeliveryNames() {
  static const auto sinks = [] {
    std::vector<std::string_view> names{"pull"};
    names.insert(names.end(), SinkNames().begin(), SinkNames().end());
    return names;
  }();
  return sinks;
}

Status TakeSink(TopicChange& change, std::string_view word, Values values) {
  size_t sink = 0;
  TOCSIN_TRY(PutChoice(sink, word, values[0], DeliveryNames()));
  DeliveryOf(change).sink = DeliveryNames()[sink];
  return {};
}

/// What the setting may be for the topic's sink is the topic's own to check.
Status TakeSetting(TopicChange& change, std::string_view word, Values values) {
  const auto field =
      std::ranges::find_if(DeliveryFields(), [&](const auto& each) { return SameWord(word, each.name); });
  std::string text(values[0]);
  if (field->kind == DeliveryFieldKind::kFlag) {
    bool flag = false;
    TOCSIN_TRY(PutChoice(flag, word, values[0], kSwitch));
    text = kSwitch[flag ? 1 : 0];
  }
  DeliveryOf(change).settings.insert_or_assign(std::string(field->name), std::move(text));
  return {};
}

constexpr Option<TopicChange> kOptions[] = {
    {"SLOTS", 1, Take<&TopicChange::slots, 1, kSlotsMax>},
    {"CAPACITY_JOBS", 1, Take<&TopicChange::capacity_jobs>},
    {"CAPACITY_BYTES", 1, Take<&TopicChange::capacity_bytes>},
    {"LEASE_MS", 1, Take<&TopicChange::lease, 0, kMostMs>},
    {"MAX_ATTEMPTS", 1, Take<&TopicChange::max_attempts, 1, kAttemptsMax>},
    {"BACKOFF_BASE_MS", 1, Take<&TopicChange::backoff_base, 0, kMostMs>},
    {"BACKOFF_MAX_MS", 1, Take<&TopicChange::backoff_max, 0, kMostMs>},
    {"COUNT_LIMIT", 1, Take<&TopicChange::count_limit, 1, kCountMax>},
    {"RETENTION_MS", 1, Take<&TopicChange::retention, 0, kMostMs>},
    {"PAUSED", 1, TakePaused},
    {"SINK", 1, TakeSink},
};

/// The settings of sinks behind those above: their names in capitals.
const std::vector<Option<TopicChange>>& AllOptions() {
  static const auto options = [] {
    static const auto words = [] {
      std::vector<std::string> capitals;
      for (const std::string_view name : DeliverySettingNames()) capitals.push_back(Capitals(name));
      return capitals;
    }();
    std::vector<Option<TopicChange>> all(std::begin(kOptions), std::end(kOptions));
    for (const std::string& word : words) all.push_back({word, 1, TakeSetting});
    TOCSIN_CHECK(all.size() <= 32);  // a bit for each: ReadOptions
    return all;
  }();
  return options;
}

std::string_view ValueOf(DeliveryFieldKind kind) {
  switch (kind) {
    case DeliveryFieldKind::kText:
      return "text";
    case DeliveryFieldKind::kNumber:
      return "n";
    case DeliveryFieldKind::kMillis:
      return "ms";
    case DeliveryFieldKind::kFlag:
      return "true|false";
  }
  return "text";
}

std::string_view Syntax() {
  static const std::string syntax = [] {
    std::string text = fmt::format(
        "topic [SLOTS n] [CAPACITY_JOBS n] [CAPACITY_BYTES n] [LEASE_MS ms] [MAX_ATTEMPTS n] [BACKOFF_BASE_MS ms] "
        "[BACKOFF_MAX_MS ms] [COUNT_LIMIT n] [RETENTION_MS ms] [PAUSED true|false] [SINK {}]",
        fmt::join(DeliveryNames(), "|"));
    for (const std::string_view name : DeliverySettingNames()) {
      const auto field = std::ranges::find(DeliveryFields(), name, &DeliveryField::name);
      text += fmt::format(" [{} {}]", Capitals(name), ValueOf(field->kind));
    }
    return text;
  }();
  return syntax;
}

void Run(Call& call) {
  ChangeTopicRequest request{.topic = std::string(call.topic()), .change = {}};
  if (const Status status = ReadOptions<TopicChange>(request.change, call.args.subspan(1), AllOptions()); !status) {
    return call.Fail(status.error());
  }
  ChangeTopic(call, std::move(request));
}

}  // namespace

const Command kTopicSet = {
    .name = "TOPIC.SET",
    .syntax = Syntax(),
    .summary = "Creates a topic or changes its settings; what is not named keeps its value.",
    .args_min = 1,
    .args_max = 1 + 2 * AllOptions().size(),
    .access = auth::Access::kTopicAdmin,
    .holds = true,
    .writes = true,
    .run = Run,
};

}  // namespace tocsin::resp
