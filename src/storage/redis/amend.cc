// RedisStore: amend, count and find.
#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

// What one script takes at most: each item costs several commands there.
constexpr size_t kAtOnce = 200;

int64_t NumberOf(const Amendment& amendment) {
  if (amendment.kind == AmendKind::kAttempts) return amendment.max_attempts;
  return WhenOf(amendment.timeline, amendment.delay, amendment.due);
}

/// As records have it.
std::string SeenDue(Time due) { return fmt::format("{}", due == kNever ? 0 : ToMs(due)); }

std::array<std::string, kAmendItem> ArgumentsOf(const Amendment& amendment, uint32_t slot) {
  const Seen seen = amendment.seen.value_or(Seen());
  return {fmt::format("{}", static_cast<int>(amendment.kind)),
          MemberIn(amendment.job, slot),
          IdField(amendment.job),
          fmt::format("{}", NumberOf(amendment)),
          seen.state ? fmt::format("{}", std::to_underlying(*seen.state)) : "",
          seen.due ? SeenDue(*seen.due) : "",
          seen.attempt ? fmt::format("{}", *seen.attempt) : "",
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
  const auto slot_of = [&](const Item& item) { return SlotFor(RefOf(item), topic.slots); };
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
  if (slot == nullptr) return amending->gather->Fail(NoSuchTopic(amending->topic).error(), amending->at);
  Command command = SlotCall(Lua<"amend">(), *slot, amending->now);
  command.Add(slots->topic.retention.count());
  AddLimit(command, slots->topic.capacity_bytes);
  AddEra(command, slots->topic);
  amending->AddItems(command);
  Send(std::move(command), [this, amending = std::move(amending), name = slot->name](Result<Reply> reply) {
    if (!reply) return amending->gather->Fail(std::move(reply).error(), amending->at);
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
    LearnFailed(name, root[4]);
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
  if (slot == nullptr) return counting->gather->Fail(NoSuchTopic(counting->topic).error(), counting->at);
  Command command = SlotCall(Lua<"count">(), *slot, counting->now);
  counting->AddItems(command);
  Send(std::move(command), [this, counting = std::move(counting), name = slot->name](Result<Reply> reply) {
    if (!reply) return counting->gather->Fail(std::move(reply).error(), counting->at);
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

Command RedisStore::FindCall(const Slot& slot, Moment now) const {
  Command command = slot.keys.Call(Lua<"find">(), {Part::kStore, Part::kJob, Part::kPrepare, Part::kDead, Part::kEnded,
                                                   Part::kId, Part::kNote, Part::kCount, Part::kClaim});
  AddNow(command, now);
  return command;
}

Status RedisStore::ShowFound(const ReplyView& found, size_t at, uint32_t slot, JobView& view) {
  const auto sequence = SequenceOf(found[at].text());
  if (!sequence) return {};
  const std::string_view note = found[at + 2].text();
  TOCSIN_TRY(DecodeJob(*sequence, found[at + 1].text(), note, view));
  view.uid = *sequence << kSlotBits | slot;
  view.due = DueOf(found[at + 4].integer());
  view.count_left = static_cast<uint32_t>(found[at + 6].integer());
  ShowState({static_cast<State>(found[at + 3].integer()), FromMs(found[at + 5].integer()), found[at + 7].text()}, note,
            view);
  return {};
}

size_t RedisStore::FoundBytes(const ReplyView& found, size_t at) {
  return found[at + 1].text().size() + found[at + 2].text().size() + found[at + 7].text().size();
}

/// What a lookup has found so far.
struct RedisStore::FoundJobs {
  JobRoom* room;
  JobBatch batch = {};
  size_t bytes = 0;

  void Put(size_t place, JobView view) {
    Append(batch, std::move(view));
    batch.jobs[place] = std::move(batch.jobs.back());
    batch.jobs.pop_back();
  }
  /// Takes room for a copy of so many bytes. From the first for which there is none, nothing is copied.
  bool Fits(size_t more) {
    bytes += more;
    batch.no_room = batch.no_room || (room != nullptr && !room->Reach(batch.jobs.size(), bytes));
    return !batch.no_room;
  }
};

void RedisStore::Find(std::string_view topic, std::span<const JobRef> jobs, JobRoom* room, Moment now,
                      Done<JobBatch> done) {
  TopicSlots* slots = FindTopic(topic);
  if (slots == nullptr) return done(NoSuchTopic(topic));
  auto found = std::make_shared<FoundJobs>(room);
  found->batch.jobs.resize(jobs.size());
  const auto gather = Join([found, done = std::move(done)](Result<void> all) mutable {
    if (!all) return done(std::unexpected(std::move(all).error()));
    if (found->batch.no_room) found->batch.jobs.clear();
    done(std::move(found->batch));
  });
  const Finding like(std::string(topic), 0, now, gather);
  InPortions(jobs, slots->topic, like, [&](std::shared_ptr<Finding> some) { FindSome(std::move(some), found); });
  gather->Leave();
}

void RedisStore::FindSome(std::shared_ptr<Finding> finding, std::shared_ptr<FoundJobs> found) {
  const auto [slots, slot] = FindSlot(finding->topic, finding->slot);
  if (slot == nullptr) return finding->gather->Fail(NoSuchTopic(finding->topic).error());
  Command command = FindCall(*slot, finding->now);
  finding->AddItems(command);
  Send(std::move(command), [this, finding = std::move(finding), found = std::move(found)](Result<Reply> reply) {
    if (!reply) return finding->gather->Fail(std::move(reply).error());
    const ReplyView list = reply->root()[1];
    const auto rest = finding->Rest(list.size() / kFindFields);
    for (size_t i = 0; i < finding->at.size() && found->Fits(FoundBytes(list, kFindFields * i)); ++i) {
      JobView view;
      const Status shown = ShowFound(list, kFindFields * i, finding->slot, view);
      if (!shown && !finding->gather->error) finding->gather->error = shown.error();
      if (shown && view.uid != 0) found->Put(finding->at[i], std::move(view));
    }
    if (rest && !found->batch.no_room) return FindSome(rest, found);
    finding->gather->Leave();
  });
}

}  // namespace tocsin::redis
