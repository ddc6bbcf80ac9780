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
};

void Run(Call& call) {
  ChangeTopicRequest request{.topic = std::string(call.topic()), .change = {}};
  if (const Status status = ReadOptions(request.change, call.args.subspan(1), kOptions); !status) {
    return call.Fail(status.error());
  }
  ChangeTopic(call, std::move(request));
}

}  // namespace

const Command kTopicSet = {
    .name = "TOPIC.SET",
    .syntax =
        "topic [SLOTS n] [CAPACITY_JOBS n] [CAPACITY_BYTES n] [LEASE_MS ms] [MAX_ATTEMPTS n] [BACKOFF_BASE_MS ms] "
        "[BACKOFF_MAX_MS ms] [COUNT_LIMIT n] [RETENTION_MS ms] [PAUSED true|false]",
    .summary = "Creates a topic or changes its settings; what is not named keeps its value.",
    .args_min = 1,
    .args_max = 21,
    .access = auth::Access::kTopicAdmin,
    .holds = true,
    .writes = true,
    .run = Run,
};

}  // namespace tocsin::resp
