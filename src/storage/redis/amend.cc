// RedisStore: amend, count and find.
#include <cstring>

#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

// What one script takes at most: each item costs several commands there.
constexpr size_t kAtOnce = 200;

std::array<std::string, kAmendItem> ArgumentsOf(const Amendment& amendment, uint32_t slot) {
  return {fmt::format("{}", static_cast<int>(amendment.kind)),
          MemberIn(amendment.job, slot),
          IdField(amendment.job),
          fmt::format("{}", WhenOf(amendment.timeline, amendment.delay, amendment.due)),
          amendment.payload ? "1" : "0",
          std::string(amendment.payload.value_or(""))};
}

std::array<std::string, kCountItem> ArgumentsOf(const CountEvent& event, uint32_t slot) {
  return {MemberIn(event.job, slot), IdField(event.job), std::string(event.event), fmt::format("{}", event.by)};
}

std::array<std::string, kFindItem> ArgumentsOf(const JobRef& job, uint32_t slot) {
  return {MemberIn(job, slot), IdField(job)};
}

const JobRef& RefOf(const JobRef& job) { return job; }
const JobRef& RefOf(const auto& item) { return item.job; }

/// Cuts a call into portions like `like`, and sends them.
template <class Item, class Outcome, size_t N, class Send>
void InPortions(std::span<const Item> items, const Topic& topic, const Portion<Outcome, N>& like, Send send) {
  const auto slot_of = [&](const Item& item) { return SlotFor(RefOf(item).key, RefOf(item).id, topic.slots); };
  for (const auto& [number, places] : BySlot(items, slot_of)) {
    std::shared_ptr<Portion<Outcome, N>> portion;
    size_t bytes = 0;
    for (const uint32_t at : places) {
      auto arguments = ArgumentsOf(items[at], number);
      bytes += arguments.back().size();
      if (portion && (portion->at.size() == kAtOnce || bytes > kScriptBytesMax)) send(std::exchange(portion, nullptr));
      if (!portion) {
        portion = like.Like();
        portion->slot = number;
        ++portion->gather->left;
        bytes = arguments.back().size();
      }
      portion->at.push_back(at);
      portion->items.push_back(std::move(arguments));
    }
    send(std::move(portion));
  }
}

}  // namespace

void RedisStore::Amend(std::string_view topic, std::span<const Amendment> amendments, Moment now,
                       Done<std::vector<Amended>> done) {
  TopicSlots* slots = FindTopic(topic);
  if (slots == nullptr) return done(NoSuchTopic(topic));
  const auto gather = std::make_shared<Gather<Amended>>(amendments.size(), std::move(done));
  const Amending like(std::string(topic), 0, now, gather);
  InPortions(amendments, slots->topic, like, [this](std::shared_ptr<Amending> some) { AmendSome(std::move(some)); });
  gather->Leave();
}

void RedisStore::AmendSome(std::shared_ptr<Amending> amending) {
  const auto [slots, slot] = FindSlot(amending->topic, amending->slot);
  if (slot == nullptr) return amending->gather->Fail(NoSuchTopic(amending->topic).error());
  Command command = SlotCall(Lua<"amend">(), *slot, amending->now);
  command.Add(slots->topic.retention.count());
  AddLimit(command, slots->topic.capacity_bytes);
  AddEra(command, slots->topic);
  amending->AddItems(command);
  Send(std::move(command), [this, amending = std::move(amending), name = slot->name](Result<Reply> reply) {
    if (!reply) return amending->gather->Fail(std::move(reply).error());
    const ReplyView root = reply->root();
    const auto rest = amending->Rest(root[1].size() / 2);
    uint64_t lacks = 0;
    for (size_t i = 0; i < amending->at.size(); ++i) {
      const auto outcome = static_cast<AmendOutcome>(root[1][2 * i].integer());
      const int64_t number = root[1][2 * i + 1].integer();
      const bool refused = outcome == AmendOutcome::kOverCapacity;
      amending->gather->outcomes[amending->at[i]] = {outcome, number > 0 && !refused ? FromMs(number) : Time{}};
      if (refused) lacks += static_cast<uint64_t>(number);
    }
    LearnSlot(name, root[0].integer(), root[2].integer(), root[3]);
    if (rest) {
      ++rest->gather->left;
      AmendSome(rest);
    }
    AskForRoom<&RedisStore::AmendSome>(amending->Refused(), 0, lacks);
  });
}

void RedisStore::Count(std::string_view topic, std::span<const CountEvent> events, Moment now,
                       Done<std::vector<Counted>> done) {
  TopicSlots* slots = FindTopic(topic);
  if (slots == nullptr) return done(NoSuchTopic(topic));
  const auto gather = std::make_shared<Gather<Counted>>(events.size(), std::move(done));
  const Counting like(std::string(topic), 0, now, gather);
  InPortions(events, slots->topic, like, [this](std::shared_ptr<Counting> some) { CountSome(std::move(some)); });
  gather->Leave();
}

void RedisStore::CountSome(std::shared_ptr<Counting> counting) {
  const auto [slots, slot] = FindSlot(counting->topic, counting->slot);
  if (slot == nullptr) return counting->gather->Fail(NoSuchTopic(counting->topic).error());
  Command command = SlotCall(Lua<"count">(), *slot, counting->now);
  counting->AddItems(command);
  Send(std::move(command), [this, counting = std::move(counting), name = slot->name](Result<Reply> reply) {
    if (!reply) return counting->gather->Fail(std::move(reply).error());
    const ReplyView root = reply->root();
    const auto rest = counting->Rest(root[1].size() / 2);
    for (size_t i = 0; i < counting->at.size(); ++i) {
      counting->gather->outcomes[counting->at[i]] = {static_cast<CountOutcome>(root[1][2 * i].integer()),
                                                     static_cast<uint32_t>(root[1][2 * i + 1].integer())};
    }
    LearnSlot(name, root[0].integer(), root[2].integer(), root[3]);
    if (rest) return CountSome(rest);
    counting->gather->Leave();
  });
}

Status RedisStore::ShowFound(const ReplyView& found, size_t at, uint32_t slot, JobBatch& batch, JobView& view) {
  const auto sequence = SequenceOf(found[at].text());
  if (!sequence) return {};
  const std::string_view record = found[at + 1].text();
  const std::string_view note = found[at + 2].text();
  batch.bytes.push_back(std::make_unique<char[]>(record.size() + note.size()));
  char* bytes = batch.bytes.back().get();
  std::memcpy(bytes, record.data(), record.size());
  std::memcpy(bytes + record.size(), note.data(), note.size());
  TOCSIN_TRY(DecodeJob(*sequence, {bytes, record.size()}, {bytes + record.size(), note.size()}, view));
  view.uid = *sequence << kSlotBits | slot;
  view.state = static_cast<State>(found[at + 3].integer());
  view.due = DueOf(found[at + 4].integer());
  if (view.state == State::kLeased) view.lease_deadline = FromMs(found[at + 5].integer());
  view.count_left = static_cast<uint32_t>(found[at + 6].integer());
  return {};
}

void RedisStore::Find(std::string_view topic, std::span<const JobRef> jobs, Moment now, Done<JobBatch> done) {
  TopicSlots* slots = FindTopic(topic);
  if (slots == nullptr) return done(NoSuchTopic(topic));
  auto found = std::make_shared<JobBatch>();
  found->jobs.resize(jobs.size());
  const auto gather = Join([found, done = std::move(done)](Result<void> all) mutable {
    if (!all) return done(std::unexpected(std::move(all).error()));
    done(std::move(*found));
  });
  const Finding like(std::string(topic), 0, now, gather);
  InPortions(jobs, slots->topic, like, [&](std::shared_ptr<Finding> some) { FindSome(std::move(some), found); });
  gather->Leave();
}

void RedisStore::FindSome(std::shared_ptr<Finding> finding, std::shared_ptr<JobBatch> found) {
  const auto [slots, slot] = FindSlot(finding->topic, finding->slot);
  if (slot == nullptr) return finding->gather->Fail(NoSuchTopic(finding->topic).error());
  Command command = slot->keys.Call(Lua<"find">(), {Part::kStore, Part::kJob, Part::kPrepare, Part::kDead, Part::kEnded,
                                                    Part::kId, Part::kNote, Part::kCount});
  AddNow(command, finding->now);
  finding->AddItems(command);
  Send(std::move(command), [this, finding = std::move(finding), found = std::move(found)](Result<Reply> reply) {
    if (!reply) return finding->gather->Fail(std::move(reply).error());
    const ReplyView list = reply->root()[1];
    const auto rest = finding->Rest(list.size() / kFindFields);
    for (size_t i = 0; i < finding->at.size(); ++i) {
      const Status shown = ShowFound(list, kFindFields * i, finding->slot, *found, found->jobs[finding->at[i]]);
      if (!shown && !finding->gather->error) finding->gather->error = shown.error();
    }
    if (rest) return FindSome(rest, found);
    finding->gather->Leave();
  });
}

}  // namespace tocsin::redis
