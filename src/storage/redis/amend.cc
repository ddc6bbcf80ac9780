// RedisStore: amend, count and find.
#include <algorithm>
#include <cstring>

#include "storage/redis/calls.h"
#include "storage/redis/gather.h"
#include "storage/redis/record.h"
#include "storage/redis/scripts.h"
#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

constexpr size_t kAtOnce = 200;  // in one script: each costs several commands there

/// Cuts what goes to one slot into scripts.
template <class Send>
void InChunks(const std::vector<uint32_t>& places, Send send) {
  for (size_t begin = 0; begin < places.size(); begin += kAtOnce) {
    const size_t end = std::min(begin + kAtOnce, places.size());
    send(std::vector<uint32_t>(places.begin() + static_cast<ptrdiff_t>(begin),
                               places.begin() + static_cast<ptrdiff_t>(end)));
  }
}

void AddAmendment(Command& command, const Amendment& amendment, uint32_t slot) {
  command.Add(static_cast<int64_t>(amendment.kind)).Add(MemberIn(amendment.job, slot)).Add(IdField(amendment.job));
  command.Add(WhenOf(amendment.timeline, amendment.delay, amendment.due));
  command.Add(int64_t{amendment.payload.has_value()}).Add(amendment.payload.value_or(""));
}

}  // namespace

void RedisStore::Amend(std::string_view topic, std::span<const Amendment> amendments, Moment now,
                       Done<std::vector<Amended>> done) {
  Shelf* shelf = FindShelf(topic);
  if (shelf == nullptr) return done(NoTopic(topic));
  auto gather = std::make_shared<Gather<Amended>>(amendments.size(), std::move(done));
  const auto slot_of = [&](const Amendment& each) { return SlotFor(each.job.key, each.job.id, shelf->topic.slots); };
  for (const auto& [number, all] : BySlot(amendments, slot_of)) {
    const Slot& slot = *shelf->Find(number);
    InChunks(all, [&](std::vector<uint32_t> places) {
      Command command = slot.keys.Call(
          scripts::Amend(), {Part::kMeta, Part::kStore, Part::kJob, Part::kNext, Part::kPrepare, Part::kDead,
                             Part::kEnded, Part::kId, Part::kNote, Part::kCount, Part::kEvent, Part::kChore});
      AddNow(command, now);
      command.Add(slot.name).Add(keys_.channel).Add(int64_t{slot.group});
      command.Add(shelf->topic.retention.count());
      AddLimit(command, shelf->topic.capacity_bytes);
      AddEra(command, shelf->topic);
      for (const uint32_t at : places) AddAmendment(command, amendments[at], number);
      ++gather->left;
      Send(std::move(command), [this, gather, name = slot.name, places = std::move(places)](Result<Reply> reply) {
        if (!reply) return gather->Fail(std::move(reply).error());
        const ReplyView root = reply->root();
        for (size_t i = 0; i < places.size(); ++i) {
          const int64_t due = root[1][2 * i + 1].integer();
          gather->outcomes[places[i]] = {static_cast<AmendOutcome>(root[1][2 * i].integer()),
                                         due > 0 ? FromMs(due) : Time{}};
        }
        LearnSlot(name, root[0].integer(), root[2].integer(), root[3]);
        gather->Leave();
      });
    });
  }
  gather->Leave();
}

void RedisStore::Count(std::string_view topic, std::span<const CountEvent> events, Moment now,
                       Done<std::vector<Counted>> done) {
  Shelf* shelf = FindShelf(topic);
  if (shelf == nullptr) return done(NoTopic(topic));
  auto gather = std::make_shared<Gather<Counted>>(events.size(), std::move(done));
  const auto slot_of = [&](const CountEvent& each) { return SlotFor(each.job.key, each.job.id, shelf->topic.slots); };
  for (const auto& [number, all] : BySlot(events, slot_of)) {
    const Slot& slot = *shelf->Find(number);
    InChunks(all, [&](std::vector<uint32_t> places) {
      Command command = slot.keys.Call(scripts::Count(),
                                       {Part::kMeta, Part::kStore, Part::kJob, Part::kNext, Part::kPrepare, Part::kDead,
                                        Part::kEnded, Part::kId, Part::kNote, Part::kCount, Part::kEvent,
                                        Part::kChore});
      AddNow(command, now);
      command.Add(slot.name).Add(keys_.channel).Add(int64_t{slot.group});
      for (const uint32_t at : places) {
        const CountEvent& event = events[at];
        command.Add(MemberIn(event.job, number)).Add(IdField(event.job)).Add(event.event).Add(int64_t{event.by});
      }
      ++gather->left;
      Send(std::move(command), [this, gather, name = slot.name, places = std::move(places)](Result<Reply> reply) {
        if (!reply) return gather->Fail(std::move(reply).error());
        const ReplyView root = reply->root();
        for (size_t i = 0; i < places.size(); ++i) {
          gather->outcomes[places[i]] = {static_cast<CountOutcome>(root[1][2 * i].integer()),
                                         static_cast<uint32_t>(root[1][2 * i + 1].integer())};
        }
        LearnSlot(name, root[0].integer(), root[2].integer(), root[3]);
        gather->Leave();
      });
    });
  }
  gather->Leave();
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
  TOCSIN_TRY(DecodeJob({bytes, record.size()}, {bytes + record.size(), note.size()}, view));
  view.uid = *sequence << kSlotBits | slot;
  view.state = static_cast<State>(found[at + 3].integer());
  view.due = DueOf(found[at + 4].integer());
  if (view.state == State::kLeased) view.lease_deadline = FromMs(found[at + 5].integer());
  view.count_left = static_cast<uint32_t>(found[at + 6].integer());
  return {};
}

void RedisStore::Find(std::string_view topic, std::span<const JobRef> jobs, Moment now, Done<JobBatch> done) {
  Shelf* shelf = FindShelf(topic);
  if (shelf == nullptr) return done(NoTopic(topic));
  auto found = std::make_shared<JobBatch>();
  found->jobs.resize(jobs.size());
  const auto gather = Join([found, done = std::move(done)](Result<void> all) mutable {
    if (!all) return done(std::unexpected(std::move(all).error()));
    done(std::move(*found));
  });
  const auto slot_of = [&](const JobRef& job) { return SlotFor(job.key, job.id, shelf->topic.slots); };
  for (const auto& [number, all] : BySlot(jobs, slot_of)) {
    const Slot& slot = *shelf->Find(number);
    InChunks(all, [&](std::vector<uint32_t> places) {
      Command command = slot.keys.Call(scripts::Find(), {Part::kStore, Part::kJob, Part::kPrepare, Part::kDead,
                                                         Part::kEnded, Part::kId, Part::kNote, Part::kCount});
      AddNow(command, now);
      for (const uint32_t at : places) command.Add(MemberIn(jobs[at], number)).Add(IdField(jobs[at]));
      ++gather->left;
      Send(std::move(command), [gather, found, slot = number, places = std::move(places)](Result<Reply> reply) {
        if (!reply) return gather->Fail(std::move(reply).error());
        const ReplyView list = reply->root()[1];
        for (size_t i = 0; i < places.size(); ++i) {
          const Status shown = ShowFound(list, kFindFields * i, slot, *found, found->jobs[places[i]]);
          if (!shown && !gather->error) gather->error = shown.error();
        }
        gather->Leave();
      });
    });
  }
  gather->Leave();
}

}  // namespace tocsin::redis
