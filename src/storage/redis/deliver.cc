// RedisStore: claim and settle.
#include <cstring>
#include <deque>

#include "base/log.h"
#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

constexpr size_t kAskBytesMin = 16 << 10;  // of records, in one answer
constexpr uint32_t kNoSlot = UINT32_MAX;
// The lowest bit of a token's fence is set for a lease that is not its job's first. The scripts compare the rest.
constexpr uint64_t kLater = 1;
constexpr int kFenceBits = 53;

bool OnlyAcks(std::span<const Settlement> settlements, const std::vector<uint32_t>& places) {
  return std::ranges::all_of(places, [&](uint32_t at) { return settlements[at].kind == SettleKind::kAck; });
}

void AddFence(Command& command, const Token& token) {
  command.Add((token.fence & kLater) != 0 ? kLeaseLater : kLeaseFirst).Add(static_cast<int64_t>(token.fence >> 1));
}

/// In runs of one fence, each in the order of the members, as Redis has them: a client mostly acks together what it was
/// given together.
void AddAcks(Command& command, std::span<const Settlement> settlements, std::vector<uint32_t>& places) {
  std::ranges::sort(places, {}, [&](uint32_t at) {
    return std::tuple(settlements[at].token.fence, settlements[at].token.handle, at);
  });
  std::string members;
  for (auto run = places.begin(); run != places.end();) {
    const Token& token = settlements[*run].token;
    AddFence(command, token);
    members.clear();
    for (; run != places.end() && settlements[*run].token.fence == token.fence; ++run) {
      members += MemberOf(settlements[*run].token.handle);
    }
    command.Add(members);
  }
}

void AddSettlement(Command& command, const Settlement& settlement, const Topic& topic) {
  command.Add(static_cast<int64_t>(settlement.kind));
  if (settlement.kind == SettleKind::kExtend) {
    command.Add((settlement.lease > Millis(0) ? settlement.lease : topic.lease).count());
  } else if (settlement.delay) {
    command.Add(settlement.delay->count());
  } else {
    command.Add("");
  }
  command.Add(settlement.reason);
}

}  // namespace

/// A claim goes from slot to slot until it has enough.
struct RedisStore::Claiming {
  std::string topic;
  JobMax max;
  std::string holder;
  Millis lease{0};
  Moment now;
  Done<JobBatch> done;
  bool scanned = false;  // the groups of the topic, because no slot was known to be ready
  uint64_t asked = 0;    // slots so far
  uint32_t slot = 0;     // the last of them
  IoTime asked_at{};
  size_t bytes = 0;
  size_t first_bytes = 0;  // of the largest first job of a slot that the bytes asked for were too few for
  JobBatch batch;
  std::optional<Error> error;  // of a slot or a group that it skipped

  struct Ask {
    size_t jobs = 0;
    size_t bytes = 0;
  };
  /// How much to ask the next slot for, if its jobs have about `each` bytes: no more than there is room for, and
  /// nothing if there is none. The room is taken now, because the jobs are leased when the answer comes.
  Ask NextAsk(size_t each) const {
    Ask ask{.jobs = std::min(max.jobs - batch.jobs.size(), kScriptJobsMax)};
    ask.bytes = max.room == nullptr ? kClaimBytes : std::min(2 * each * ask.jobs, kClaimBytes);
    const size_t least = std::max(first_bytes, kAskBytesMin);
    ask.bytes = std::max(ask.bytes, least);
    if (max.room == nullptr) return ask;
    while (!max.room->Reach(batch.jobs.size() + ask.jobs, bytes + ask.bytes)) {
      if (ask.jobs == 1 && ask.bytes == least) return {};
      ask = {std::max<size_t>(ask.jobs / 4, 1), std::max(ask.bytes / 4, least)};
    }
    return ask;
  }

  /// What slots have given is leased, so an error must not hide it.
  void End() {
    if (max.room != nullptr) max.room->Lower(batch.jobs.size(), bytes);
    if (batch.jobs.empty() && error) return done(std::unexpected(std::move(*error)));
    done(std::move(batch));
  }
};

void RedisStore::Claim(std::string_view topic, JobMax max, Millis lease, Moment now, Done<JobBatch> done) {
  if (FindTopic(topic) == nullptr) return done(NoSuchTopic(topic));
  std::string holder(max.holder.substr(0, kHolderBytesMax));
  ClaimNext(std::make_shared<Claiming>(std::string(topic), max, std::move(holder), lease, now, std::move(done)));
}

void RedisStore::ClaimNext(std::shared_ptr<Claiming> claiming) {
  TopicSlots* slots = FindTopic(claiming->topic);
  const bool enough = claiming->batch.jobs.size() >= claiming->max.jobs || claiming->bytes >= kClaimBytes;
  if (slots == nullptr || slots->topic.paused || enough) {
    claiming->batch.more = claiming->bytes >= kClaimBytes;
    return claiming->End();
  }
  while (!slots->ready.empty()) {
    auto at = slots->ready.lower_bound(slots->turn);
    if (at == slots->ready.end()) at = slots->ready.begin();
    const uint32_t number = *at;
    slots->turn = number + 1;
    const Slot& slot = *slots->Find(number);
    if (!Serves(*slots, slot)) {
      MarkEmpty(*slots, number);
      continue;
    }
    const Group& group = *groups_[slot.group];
    if (!group.Slow(clock_.IoNow())) return ClaimFrom(*slots, number, claiming);
    if (!claiming->error) claiming->error = group.trouble.value_or(NoAnswer());
    MarkEmpty(*slots, number);  // until a scan is answered
  }
  slots->reported = false;
  // Consumers that wait are told.
  const bool waits = hungry_.contains(claiming->topic);
  if (!waits && !claiming->scanned && claiming->batch.jobs.empty()) return ScanThenClaim(std::move(claiming));
  claiming->End();
}

void RedisStore::ClaimFrom(TopicSlots& slots, uint32_t number, const std::shared_ptr<Claiming>& claiming) {
  Slot& slot = *slots.Find(number);
  const Claiming::Ask ask = claiming->NextAsk(slots.record_bytes);
  if (ask.jobs == 0) {
    ShareRest(slots, slot);  // consumers of another node may have room
    (claiming->batch.jobs.empty() ? claiming->batch.no_room : claiming->batch.more) = true;
    return claiming->End();
  }
  Command command = slot.keys.Call(
      Lua<"claim">(), {Part::kMeta, Part::kStore, Part::kJob, Part::kNext, Part::kPrepare, Part::kDead, Part::kEnded,
                       Part::kNote, Part::kCount, Part::kEvent, Part::kChore, Part::kClaim});
  AddNow(command, claiming->now);
  const Millis lease = claiming->lease > Millis(0) ? claiming->lease : slots.topic.lease;
  command.Add(slot.name).Add(static_cast<int64_t>(ask.jobs)).Add(lease.count()).Add(static_cast<int64_t>(ask.bytes));
  const Group& group = *groups_[slot.group];
  command.Add(group.Mine() ? std::string_view() : group.channel).Add(int64_t{slot.group}).Add(claiming->holder);
  claiming->slot = number;
  claiming->asked_at = clock_.IoNow();
  claims_.insert(claiming);
  Send(std::move(command), [this, claiming, asked = ++claiming->asked, number](Result<Reply> reply) {
    if (asked != claiming->asked) return GiveBack(claiming->topic, number, reply);
    claims_.erase(claiming);
    SlotAnswered(*claiming, number, reply);
    ClaimNext(claiming);
  });
}

void RedisStore::SlotAnswered(Claiming& claiming, uint32_t number, const Result<Reply>& reply) {
  if (!reply) {
    if (!claiming.error) claiming.error = reply.error();
    if (TopicSlots* slots = FindTopic(claiming.topic); slots != nullptr) MarkEmpty(*slots, number);
    return;
  }
  const ReplyView root = reply->root();
  LearnSlot(fmt::format("{}/{}", claiming.topic, number), root[0].integer(), root[1].integer(), root[2], true);
  if (Group& group = *groups_[tags_.GroupOf(claiming.topic, number)]; root[5].integer() > 0)
    group.Chore(root[5].integer());
  Claimed(claiming, number, root);
}

void RedisStore::GiveUpClaims() {
  const IoTime now = clock_.IoNow();
  std::vector<std::shared_ptr<Claiming>> slow;
  for (const auto& claiming : claims_) {
    const Group& group = *groups_[tags_.GroupOf(claiming->topic, claiming->slot)];
    // If another node looks after the group, no scan of ours tells whether its server is slow.
    const bool may_be = group.Slow(now) || group.Watched(now);
    if (now - claiming->asked_at >= kSlowAfter && may_be) slow.push_back(claiming);
  }
  for (auto& claiming : slow) {
    claims_.erase(claiming);
    ++claiming->asked;  // an answer that comes later is given back
    SlotAnswered(*claiming, claiming->slot, std::unexpected(NoAnswer()));
    ClaimNext(std::move(claiming));
  }
}

void RedisStore::GiveBack(const std::string& topic, uint32_t number, const Result<Reply>& reply) {
  if (!reply) return;
  Claiming late;
  late.topic = topic;
  SlotAnswered(late, number, reply);
  std::vector<Settlement> settlements;
  for (const JobView& job : late.batch.jobs) settlements.push_back({.token = job.token, .kind = SettleKind::kRelease});
  Settle(topic, settlements, clock_.Now(), [](const Result<std::vector<SettleOutcome>>&) {});
}

void RedisStore::Claimed(Claiming& claiming, uint32_t slot, const ReplyView& reply) {
  const std::string_view members = reply[6].text();
  const ReplyView records = reply[7];
  const ReplyView notes = reply[8];  // empty, or one for each record
  claiming.first_bytes = std::max(claiming.first_bytes, static_cast<size_t>(reply[9].integer()));
  size_t size = 0;
  for (size_t i = 0; i < records.size(); ++i) size += records[i].text().size();
  for (size_t i = 0; i < notes.size(); ++i) size += notes[i].text().size();
  if (size == 0) return;
  claiming.bytes += size;
  if (TopicSlots* slots = FindTopic(claiming.topic); slots != nullptr) slots->record_bytes = size / records.size();
  claiming.batch.bytes.push_back(std::make_unique<char[]>(size));
  char* at = claiming.batch.bytes.back().get();
  const auto keep = [&at](std::string_view text) {
    std::memcpy(at, text.data(), text.size());
    const std::string_view kept(at, text.size());
    at += text.size();
    return kept;
  };
  const auto first = static_cast<uint64_t>(reply[3].integer());
  const auto later = static_cast<uint64_t>(reply[4].integer());
  for (size_t i = 0; i < records.size(); ++i) {
    JobView view;
    const uint64_t sequence = SequenceOf(members.substr(i * kMemberBytes, kMemberBytes)).value_or(0);
    const std::string_view note = i < notes.size() ? keep(notes[i].text()) : std::string_view();
    if (const Status whole = DecodeJob(sequence, keep(records[i].text()), note, view); !whole) {
      // It stays leased, comes back until its attempts are used up, and ends as a dead letter: it blocks nobody.
      LogError("job {} of topic {} cannot be delivered: {}", UidText(sequence << kSlotBits | slot), claiming.topic,
               whole.error().message);
      continue;
    }
    ++view.attempt;
    view.uid = sequence << kSlotBits | slot;
    view.state = State::kLeased;
    view.token = {slot, sequence, note.empty() ? first << 1 : later << 1 | kLater};
    view.lease_deadline = FromMs(reply[5].integer());
    view.last_attempt = FromMs(reply[0].integer());
    claiming.batch.jobs.push_back(std::move(view));
  }
}

/// So that a reserve without a wait misses nothing that was submitted before it, through any node.
void RedisStore::ScanThenClaim(std::shared_ptr<Claiming> claiming) {
  claiming->scanned = true;
  std::set<uint32_t> groups;
  const TopicSlots& slots = *FindTopic(claiming->topic);
  for (const auto& [number, slot] : slots.by_number) {
    if (Serves(slots, *slot)) groups.insert(slot->group);
  }
  const auto looked = [this, claiming](Result<Advanced> found) {
    if (found->trouble && !claiming->error) claiming->error = std::move(found->trouble);
    ClaimNext(claiming);
  };
  auto advancing = MakeAdvancing(claiming->now, looked, claiming->topic);
  for (const uint32_t number : groups) {
    Group& group = *groups_[number];
    if (!group.Slow(clock_.IoNow())) {
      ScanGroup(group, claiming->now, advancing, {});
    } else if (!claiming->error) {
      claiming->error = group.trouble.value_or(NoAnswer());
    }
  }
  LeaveAdvance(advancing);
}

/// A settle, with a copy of what it was asked for: what a script did not look at, because the records are large, is
/// sent again.
struct RedisStore::Settling : Gather<SettleOutcome> {
  Settling(std::string_view the_topic, std::span<const Settlement> all, Moment the_now,
           Done<std::vector<SettleOutcome>> the_done)
      : Gather(all.size(), std::move(the_done)), topic(the_topic), now(the_now), settlements(all.begin(), all.end()) {
    std::ranges::fill(outcomes, SettleOutcome::kStale);
    for (Settlement& each : settlements) {
      if (!each.reason.empty()) each.reason = reasons.emplace_back(each.reason);
    }
  }

  const std::string topic;
  const Moment now;
  std::vector<Settlement> settlements;
  std::deque<std::string> reasons;  // the settlements point to them
};

void RedisStore::Settle(std::string_view topic, std::span<const Settlement> settlements, Moment now,
                        Done<std::vector<SettleOutcome>> done) {
  TopicSlots* slots = FindTopic(topic);
  if (slots == nullptr) return done(NoSuchTopic(topic));
  const auto settling = std::make_shared<Settling>(topic, settlements, now, std::move(done));
  // A token with numbers that no token has, or of a slot that does not exist, is stale.
  const auto slot_of = [](const Settlement& each) {
    const bool possible = each.token.fence >> 1 != 0 && each.token.fence >> (kFenceBits + 1) == 0 &&
                          each.token.handle >> (8 * kMemberBytes) == 0;
    return possible ? each.token.slot : kNoSlot;
  };
  for (const auto& [number, all] : BySlot(settlements, slot_of)) {
    if (slots->Find(number) == nullptr) continue;
    for (size_t begin = 0; begin < all.size(); begin += kScriptJobsMax) {
      const size_t end = std::min(begin + kScriptJobsMax, all.size());
      ++settling->left;
      SettlePart(settling, number,
                 {all.begin() + static_cast<ptrdiff_t>(begin), all.begin() + static_cast<ptrdiff_t>(end)});
    }
  }
  settling->Leave();
}

Command RedisStore::AckCall(const Slot& slot, const Topic& topic, const Settling& settling,
                            std::vector<uint32_t>& places) const {
  Command command = slot.keys.Call(Lua<"ack">(), {Part::kMeta, Part::kStore, Part::kJob, Part::kPrepare, Part::kDead,
                                                  Part::kEnded, Part::kId, Part::kNote, Part::kChore, Part::kClaim});
  AddNow(command, settling.now);
  command.Add(slot.name).Add(topic.retention.count());
  AddAcks(command, settling.settlements, places);
  return command;
}

Command RedisStore::SettleCall(const Slot& slot, const Topic& topic, const Settling& settling,
                               const std::vector<uint32_t>& places) const {
  Command command = SlotCall(Lua<"settle">(), slot, settling.now);
  command.Add(int64_t{slot.number}).Add(topic.retention.count());
  command.Add(topic.backoff_base.count()).Add(topic.backoff_max.count());
  for (const uint32_t at : places) {
    command.Add(MemberOf(settling.settlements[at].token.handle));
    AddFence(command, settling.settlements[at].token);
    AddSettlement(command, settling.settlements[at], topic);
  }
  return command;
}

void RedisStore::ForgetAcked(const Settling& settling, uint32_t number, std::span<const uint32_t> places) {
  TopicSlots* const slots = FindTopic(settling.topic);
  if (slots == nullptr) return;
  for (const uint32_t at : places) {
    if (settling.outcomes[at] != SettleOutcome::kOk) continue;
    slots->worst.Forget(settling.settlements[at].token.handle << kSlotBits | number);
  }
}

void RedisStore::SettlePart(const std::shared_ptr<Settling>& settling, uint32_t number, std::vector<uint32_t> places) {
  const auto [slots, found] = FindSlot(settling->topic, number);
  if (found == nullptr) return settling->Fail(NoSuchTopic(settling->topic).error(), places);
  const Slot& slot = *found;
  const Topic& topic = slots->topic;
  const std::span<const Settlement> settlements = settling->settlements;
  const bool acks = OnlyAcks(settlements, places);
  Command command = acks ? AckCall(slot, topic, *settling, places) : SettleCall(slot, topic, *settling, places);
  Send(std::move(command),
       [this, settling, acks, number, name = slot.name, places = std::move(places)](Result<Reply> reply) {
         if (!reply) return settling->Fail(std::move(reply).error(), places);
         const ReplyView root = reply->root();
         const size_t looked = acks ? static_cast<size_t>(root[3].integer()) : root[1].size();
         for (size_t i = 0; i < looked; ++i) {
           // An ack that names no outcome has settled all.
           settling->outcomes[places[i]] =
               root[1].size() == 0 ? SettleOutcome::kOk : static_cast<SettleOutcome>(root[1][i].integer());
         }
         if (acks) {
           LearnFigures(name, root[2]);
           ForgetAcked(*settling, number, {places.begin(), looked});
         } else {
           LearnSlot(name, root[0].integer(), root[2].integer(), root[3]);
           LearnFailed(name, root[4]);
         }
         if (looked == places.size()) return settling->Leave();
         SettlePart(settling, number, {places.begin() + static_cast<ptrdiff_t>(looked), places.end()});
       });
}

}  // namespace tocsin::redis
