// RedisStore: the future load. Redis keeps no counts of minutes, so each call counts: one script for some steps of a
// slot, a few scripts at a time, so that other calls have their turns in between.
#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

constexpr size_t kStepsEach = 250;  // of one script: a quarter of a millisecond
constexpr size_t kAtOnce = 4;       // scripts under way
/// ZCOUNTs for one call, about: a tenth of a second of Redis' time.
constexpr uint64_t kCountsMax = 100'000;
/// To find one job takes about as many.
constexpr uint64_t kCountsForJob = 8;

/// As many as the scripts may take, as far as the figures are known.
uint64_t CountsFor(const Slot& slot, size_t steps) {
  const SlotFigures& figures = slot.figures;
  const uint64_t scheduled = figures.live() - figures.numbers[1] - figures.numbers[2];
  return std::min<uint64_t>(steps, steps / kStepsEach + 1 + kCountsForJob * scheduled);
}

}  // namespace

struct RedisStore::Loading {
  std::string topic;  // empty: all
  LoadSpan span;
  Moment now;
  Done<LoadCounts> done;
  LoadCounts counts;
  // Where it is: a topic, a slot, and a step.
  std::string at_topic;
  uint32_t at_slot = 0;
  size_t at_step = 0;
  size_t under_way = 0;
  bool sending = false;  // an answer that comes at once is taken in, and LoadSome goes on
  std::optional<Error> error;
};

void RedisStore::Load(std::string_view topic, const LoadSpan& span, Moment now, Done<LoadCounts> done) {
  if (!topic.empty() && FindTopic(topic) == nullptr) return done(NoSuchTopic(topic));
  uint64_t needed = 0;
  for (auto at = topics_.lower_bound(topic); at != topics_.end() && (topic.empty() || at->first == topic); ++at) {
    for (const auto& [number, slot] : at->second.by_number) needed += CountsFor(*slot, span.steps);
  }
  if (needed > kCountsMax) {
    return done(FailField(Code::kInvalidArgument, "step",
                          "Redis would have to count about {} times, and at most {} are allowed: ask for fewer or "
                          "longer steps{}",
                          needed, kCountsMax, topic.empty() ? ", or for one topic" : ""));
  }
  auto loading = std::make_shared<Loading>(std::string(topic), span, now, std::move(done));
  loading->counts.jobs.resize(span.steps);
  loading->at_topic = topic;
  LoadSome(loading);
}

void RedisStore::LoadSome(const std::shared_ptr<Loading>& loading) {
  if (std::exchange(loading->sending, true)) return;
  auto at = topics_.lower_bound(loading->at_topic);
  while (at != topics_.end() && !loading->error && loading->under_way < kAtOnce) {
    if (!loading->topic.empty() && at->first != loading->topic) break;
    if (at->first != loading->at_topic) loading->at_slot = loading->at_step = 0;
    loading->at_topic = at->first;
    const auto slot = at->second.by_number.lower_bound(loading->at_slot);
    if (slot == at->second.by_number.end()) {
      loading->at_topic.push_back('\0');  // the next name
      ++at;
      continue;
    }
    if (slot->first != loading->at_slot) loading->at_step = 0;
    loading->at_slot = slot->first;
    SendLoad(*slot->second, loading);
  }
  loading->sending = false;
  if (loading->under_way > 0) return;
  if (loading->error) return loading->done(std::unexpected(std::move(*loading->error)));
  loading->done(std::move(loading->counts));
}

void RedisStore::SendLoad(const Slot& slot, const std::shared_ptr<Loading>& loading) {
  const size_t first = loading->at_step;
  const size_t steps = std::min(kStepsEach, loading->span.steps - first);
  Command command = slot.keys.Call(Lua<"load">(), {Part::kStore});
  AddNow(command, loading->now);
  command.Add(ToMs(loading->span.StartOf(first))).Add(int64_t{loading->span.step.count()});
  command.Add(static_cast<int64_t>(steps));
  loading->at_step += steps;
  if (loading->at_step == loading->span.steps) {
    ++loading->at_slot;
    loading->at_step = 0;
  }
  ++loading->under_way;
  Send(std::move(command), [this, loading, first](Result<Reply> reply) {
    --loading->under_way;
    if (!reply) {
      loading->error = std::move(reply).error();
      return LoadSome(loading);
    }
    const ReplyView root = reply->root();
    if (first == 0) loading->counts.due += static_cast<uint64_t>(root[0].integer());
    const ReplyView jobs = root[1];
    for (size_t i = 0; i < jobs.size(); ++i) {
      loading->counts.jobs[first + i] += static_cast<uint64_t>(jobs[i].integer());
    }
    LoadSome(loading);
  });
}

}  // namespace tocsin::redis
