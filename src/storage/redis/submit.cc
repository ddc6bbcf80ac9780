// RedisStore: submit.
#include <utility>

#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

int64_t WhenOf(const NewJob& job) { return redis::WhenOf(job.timeline, job.delay, job.due); }

/// A job as the script takes it; the record is kRecordAt, and what is behind it is empty except for a copy.
using Arguments = std::array<std::string, kRestoreItem>;
constexpr size_t kRecordAt = kSubmitItem - 1;
constexpr size_t kStateAt = kSubmitItem;

Arguments ArgumentsOf(const NewJob& job, const Topic& topic) {
  const int64_t events = job.count != 0 ? job.count : topic.count_limit;
  const JobRef ref{job.id, job.key};
  Arguments arguments{job.trigger == Trigger::kCount ? "" : fmt::format("{}", WhenOf(job)),
                      fmt::format("{}", job.trigger == Trigger::kTime ? 0 : events),
                      fmt::format("{}", static_cast<int>(job.on_conflict)), MemberIn(ref, job.slot), IdField(ref)};
  EncodeRecord(job, topic, WhenOf(job), arguments[kRecordAt]);
  if (const Restored* const past = job.restored.get()) {
    arguments[kStateAt] = fmt::format("{}", std::to_underlying(past->dead ? State::kDead : State::kScheduled));
    if (past->died != Time{}) arguments[kStateAt + 1] = fmt::format("{}", ToMs(past->died));
    arguments[kStateAt + 2] = EncodeNote(*past);
  }
  return arguments;
}

bool IsCopy(const Arguments& item) { return !item[kStateAt].empty(); }

Submitted OutcomeAt(const ReplyView& results, size_t i, uint32_t slot) {
  Submitted submitted;
  submitted.outcome = static_cast<SubmitOutcome>(results[3 * i].integer());
  if (submitted.outcome == SubmitOutcome::kOverCapacity) return submitted;
  submitted.uid = static_cast<uint64_t>(results[3 * i + 1].integer()) << kSlotBits | slot;
  submitted.due = DueOf(results[3 * i + 2].integer());
  return submitted;
}

bool Plain(std::span<const NewJob> jobs, std::span<const uint32_t> places) {
  return std::ranges::all_of(places, [&](uint32_t at) {
    return jobs[at].id.empty() && jobs[at].trigger == Trigger::kTime && !jobs[at].restored;
  });
}

/// How many of `places` go into one script.
size_t Fitting(std::span<const NewJob> jobs, std::span<const uint32_t> places) {
  size_t bytes = 0;
  size_t count = 0;
  for (; count < places.size() && count < kScriptJobsMax; ++count) {
    const NewJob& job = jobs[places[count]];
    bytes += CountedBytes(job) + (job.restored ? job.restored->reason.size() : 0);
    if (count > 0 && bytes > kScriptBytesMax) break;
  }
  return count;
}

}  // namespace

void RedisStore::Submit(std::string_view topic, std::span<const NewJob> jobs, Moment now,
                        Done<std::vector<Submitted>> done) {
  TopicSlots* slots = FindTopic(topic);
  if (slots == nullptr) return done(NoSuchTopic(topic));
  auto gather = std::make_shared<Gather<Submitted>>(jobs.size(), std::move(done));
  for (const auto& [number, all] : BySlot(jobs, [](const NewJob& job) { return job.slot; })) {
    const Slot* slot = slots->Find(number);
    // The caller's topic has more slots: another one of the same name has taken its place.
    if (slot == nullptr) {
      gather->Note(NoSuchTopic(topic).error(), all);
      continue;
    }
    std::span<const uint32_t> places = all;
    while (!places.empty()) {
      const auto some = places.first(Fitting(jobs, places));
      places = places.subspan(some.size());
      ++gather->left;
      if (!Allowances::Bounded(slots->topic) && Plain(jobs, some)) {
        SubmitPlain(*slots, *slot, jobs, some, now, gather);
        continue;
      }
      auto submitting = std::make_shared<Submitting>(std::string(topic), number, now, gather);
      submitting->at.assign(some.begin(), some.end());
      for (const uint32_t at : some) submitting->items.push_back(ArgumentsOf(jobs[at], slots->topic));
      SubmitAny(std::move(submitting));
    }
  }
  gather->Leave();
}

void RedisStore::SubmitPlain(const TopicSlots& slots, const Slot& slot, std::span<const NewJob> jobs,
                             std::span<const uint32_t> places, Moment now,
                             const std::shared_ptr<Gather<Submitted>>& gather) {
  Command command =
      SlotCall(Lua<"submit_plain">(), slot, now,
               {Part::kMeta, Part::kStore, Part::kJob, Part::kNext, Part::kPrepare, Part::kDead, Part::kEnded});
  command.Add(static_cast<int64_t>(slots.topic.birth)).Add(static_cast<int64_t>(places.size()));
  std::vector<std::pair<uint32_t, int64_t>> whens;  // with their places in the call
  whens.reserve(places.size());
  for (const uint32_t at : places) whens.emplace_back(at, WhenOf(jobs[at]));
  for (auto run = whens.begin(); run != whens.end();) {
    const auto end = std::find_if(run, whens.end(), [&](const auto& each) { return each.second != run->second; });
    command.Add(run->second).Add(end - run);
    for (; run != end; ++run) {
      EncodeRecord(jobs[run->first], slots.topic, run->second, record_);
      command.Add(record_);
    }
  }
  SendToOpen(slot, std::move(command),
             [this, gather, name = slot.name, number = slot.number, whens = std::move(whens)](Result<Reply> reply) {
               if (!reply) {
                 std::vector<uint32_t> places;
                 for (const auto& [at, when] : whens) places.push_back(at);
                 return gather->Fail(std::move(reply).error(), places);
               }
               const ReplyView root = reply->root();
               const int64_t now_ms = root[0].integer();
               auto sequence = static_cast<uint64_t>(root[1].integer());
               for (const auto& [at, when] : whens) {
                 const int64_t due = when < kAbsoluteMin ? now_ms + when : std::max(when, now_ms);
                 gather->outcomes[at] = {SubmitOutcome::kAccepted, sequence++ << kSlotBits | number, FromMs(due)};
               }
               LearnSlot(name, now_ms, root[2].integer(), root[3]);
               gather->Leave();
             });
}

void RedisStore::SubmitAny(std::shared_ptr<Submitting> submitting) {
  const auto [slots, known] = FindSlot(submitting->topic, submitting->slot);
  if (known == nullptr) return submitting->gather->Fail(NoSuchTopic(submitting->topic).error(), submitting->at);
  const Slot& slot = *known;
  Command command = SlotCall(Lua<"submit">(), slot, submitting->now);
  command.Add(static_cast<int64_t>(slots->topic.birth));
  AddLimit(command, slots->topic.capacity_jobs);
  AddLimit(command, slots->topic.capacity_bytes);
  AddEra(command, slots->topic);
  const size_t each = std::ranges::any_of(submitting->items, IsCopy) ? kRestoreItem : kSubmitItem;
  command.Add(static_cast<int64_t>(each));
  submitting->AddItems(command, each);
  SendToOpen(slot, std::move(command),
             [this, submitting = std::move(submitting), name = slot.name](Result<Reply> reply) {
               if (!reply) return submitting->gather->Fail(std::move(reply).error(), submitting->at);
               const ReplyView root = reply->root();
               const auto rest = submitting->Rest(root[1].size() / 3);
               for (size_t i = 0; i < submitting->at.size(); ++i) {
                 submitting->gather->outcomes[submitting->at[i]] = OutcomeAt(root[1], i, submitting->slot);
               }
               LearnSlot(name, root[0].integer(), root[2].integer(), root[3]);
               ForgetFailed(name, root[4].text());
               if (rest) {
                 ++rest->gather->left;
                 SubmitAny(rest);
               }
               const auto refused = submitting->Refused();
               uint64_t bytes = 0;
               for (const Arguments& item : refused->items) bytes += item[kRecordAt].size() - record_at::kKey;
               AskForRoom<&RedisStore::SubmitAny>(refused, refused->at.size(), bytes);
             });
}

}  // namespace tocsin::redis
