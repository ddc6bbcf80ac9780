// RedisStore: what is due, the upkeep of owned groups, and what other nodes have changed.
#include "base/log.h"
#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

constexpr Millis kScanEvery{1'000};
constexpr int64_t kCountTopicsEvery = 5;  // of those scans
constexpr int64_t kSlotsAtOnce = 1000;    // of one group in one script; the next one goes on from there
constexpr size_t kChoresMax = 500;        // jobs in one script
constexpr auto kSlotPartsAndOwner = {Part::kMeta,  Part::kStore, Part::kJob,   Part::kNext, Part::kPrepare,
                                     Part::kDead,  Part::kEnded, Part::kId,    Part::kNote, Part::kCount,
                                     Part::kEvent, Part::kChore, Part::kClaim, Part::kOwner};

}  // namespace

/// A round of scans, and of the chores that they found.
struct RedisStore::Advancing {
  Moment now;
  IoTime began{};
  Done<Advanced> done;
  size_t budget = 0;  // for chores; what is under way is taken off, and what of it was not needed put back
  std::deque<std::pair<Group*, std::string>> waiting;  // slots with chores that found no budget left
  bool reports = false;                                // it answers an Advance; otherwise it only scans, for a claim
  std::string topic;                                   // of that claim
  bool answered = false;                               // perhaps before all parts were
  bool more = false;
  size_t left = 1;
  std::optional<Error> error;
};

std::shared_ptr<RedisStore::Advancing> RedisStore::MakeAdvancing(Moment now, Done<Advanced> done, std::string topic) {
  auto advancing = std::make_shared<Advancing>(now, clock_.IoNow(), std::move(done));
  advancing->topic = std::move(topic);
  rounds_.insert(advancing);
  return advancing;
}

void RedisStore::Advance(Moment now, size_t budget, Done<Advanced> done) {
  GiveUpWaiting();
  auto advancing = MakeAdvancing(now, std::move(done));
  advancing->budget = budget;
  advancing->reports = true;
  const bool all = now.steady >= scan_all_at_;
  if (all) {
    scan_all_at_ = now.steady + kScanEvery;
    RefreshWants();
    GiveAllTurns();
    ForgetKeepers();
    if (options_.shard == 0 && seconds_ % kCountTopicsEvery == 0) CountTopics();
  }
  ScanGroups(advancing, all || tell_now_);
  if (options_.shard == 0 && (all || topics_stale_)) CheckTopics(advancing);
  if (all) TakeGroups();
  LeaveAdvance(advancing);
}

void RedisStore::ScanGroups(const std::shared_ptr<Advancing>& advancing, bool beats) {
  for (Group* const group : LookedAt()) {
    if (group->Watched(advancing->began)) continue;
    const bool turn = std::exchange(group->turn, false);
    const bool slow = group->Slow(advancing->began);
    if (std::exchange(group->figures_turn, false) && !slow) RefreshFigures(*group, advancing->now.steady);
    // Of a group that is another node's, only its owner is told what comes: look once after its last beat.
    const bool alone = group->keeper && group->asked_at < group->keeper->beat_at;
    if (!turn && !alone && !group->Expects(RedisNow(*group, advancing->now))) continue;
    if (group->scans > 0 && slow) continue;  // its answer calls for another round
    const bool beat = beats && !slow && group->Mine();
    beats = beats && !beat;
    ScanGroup(*group, advancing->now, group->trouble ? nullptr : advancing, {}, beat ? MakeBeat() : std::string());
  }
  // If all that were scanned are slow, the groups of other servers are looked after all the same.
  const auto well = [&](const auto& group) { return group && group->Mine() && !group->Slow(advancing->began); };
  if (beats && std::ranges::any_of(groups_, well)) Publish(BeatChannel(options_.prefix), MakeBeat());
}

void RedisStore::GiveUpWaiting() {
  const IoTime now = clock_.IoNow();
  std::vector<std::shared_ptr<Advancing>> rounds;
  for (const auto& round : rounds_) {
    if (now - round->began >= kSlowAfter) rounds.push_back(round);
  }
  for (auto& round : rounds) {
    if (!round->error) round->error = NoAnswer();
    if (!round->answered) AnswerAdvance(std::move(round));
  }
  GiveUpClaims();
}

void RedisStore::ScanGroup(Group& group, Moment now, const std::shared_ptr<Advancing>& advancing, From from,
                           const std::string& beat) {
  Command command = group.keys.Call(Lua<"scan">(), {Part::kNext, Part::kChore, Part::kOwner, Part::kTopics});
  AddNow(command, now);
  command.Add(kSlotsAtOnce).Add(from.last).Add(from.score);
  if (!beat.empty()) command.Add(BeatChannel(options_.prefix)).Add(beat);
  group.stale = false;
  group.look_ms = -1;
  group.asked_at = clock_.IoNow();
  if (group.scans++ == 0) group.waits_since = clock_.IoNow();
  if (advancing) ++advancing->left;
  Send(std::move(command), [this, &group, now, advancing, messages = group.messages, beats = !beat.empty(),
                            first = from.last.empty()](Result<Reply> reply) {
    --group.scans;
    group.waits_since = clock_.IoNow();
    if (!reply) {
      group.stale = true;
      tell_all_ = tell_all_ || beats;  // nobody may have heard it
      return LeaveFailed(group.trouble, std::move(reply).error(), advancing);
    }
    group.trouble.reset();
    const int64_t told_ms = messages == group.messages ? -1 : group.next_ms;
    Scanned(group, reply->root(), advancing, first);
    // A message, which has its own connection, may have overtaken an answer that does not know of its job yet.
    group.Due(told_ms);
    const ReplyView due = reply->root()[1];
    const std::string_view full = reply->root()[8].text();
    if (!full.empty()) ScanGroup(group, now, advancing, {due[due.size() - 2].text(), full});
    LeaveAdvance(advancing);
  });
}

void RedisStore::Scanned(Group& group, const ReplyView& reply, const std::shared_ptr<Advancing>& advancing,
                         bool first) {
  const int64_t now_ms = reply[0].integer();
  if (first && reply[8].text().empty()) ForgetOldest(group);  // all that are due follow
  LearnTime(group, now_ms);
  group.next_ms = reply[2].integer();
  const bool watched = group.Watched(clock_.IoNow());
  for (size_t i = 0; i + 1 < reply[1].size(); i += 2) {
    const auto [slots, slot] = FindSlot(reply[1][i].text());
    if (slot == nullptr || slot->group != group.number) continue;
    LearnOldest(*slot, ParseMs(reply[1][i + 1].text()), now_ms);
    if (advancing && advancing->topic == slots->topic.name) {
      MarkReady(*slots, *slot);
    } else if (!watched) {
      FoundDue(group, *slots, *slot, ParseMs(reply[1][i + 1].text()), now_ms);
    }
  }
  group.chore_ms = reply[4].integer();
  group.seen_epoch = static_cast<uint64_t>(reply[5].integer());
  group.owner = reply[6].text();
  group.busy_slots = static_cast<size_t>(reply[7].integer());
  if (!group.Mine()) return;
  // If there are chores, their answers tell of a new owner. If there are none, this has to: a node that its coordinator
  // has lost would otherwise go on pushing beside the new owner. If a failover has lost this node's take, the new owner
  // may have the same epoch.
  const bool taken = group.seen_epoch > group.epoch || (!group.owner.empty() && group.owner != options_.node);
  if (reply[3].size() == 0 && taken) return LoseGroup(group);
  CompareTopics(group, static_cast<size_t>(reply[9].integer()));
  if (!advancing || advancing->answered || !advancing->reports) {
    group.stale = group.stale || reply[3].size() > 0;
    return;
  }
  for (size_t i = 0; i < reply[3].size(); ++i) DoChores(group, reply[3][i].text(), advancing);
}

void RedisStore::DoChores(Group& group, std::string_view name, const std::shared_ptr<Advancing>& advancing) {
  const auto [slots, slot] = FindSlot(name);
  if (slot == nullptr) return;
  if (advancing->budget == 0) {
    advancing->waiting.emplace_back(&group, name);
    return;
  }
  const size_t most = std::min(advancing->budget, kChoresMax);
  advancing->budget -= most;
  Command command = SlotCall(Lua<"chores">(), *slot, advancing->now, kSlotPartsAndOwner);
  command.Add(int64_t{slot->number}).Add(static_cast<int64_t>(group.epoch)).Add(static_cast<int64_t>(most));
  command.Add(slots->topic.backoff_base.count()).Add(slots->topic.backoff_max.count()).Add(options_.node);
  ++advancing->left;
  Send(std::move(command), [this, &group, advancing, name = slot->name, most](Result<Reply> reply) {
    if (!reply) {
      group.stale = true;
      return LeaveFailed(group.trouble, std::move(reply).error(), advancing);
    }
    const ReplyView root = reply->root();
    const int64_t changed = root[1].integer();
    // A slot costs at least the call.
    advancing->budget += most - std::clamp<size_t>(static_cast<size_t>(std::max<int64_t>(changed, 1)), 1, most);
    if (changed < 0) {
      LoseGroup(group);
    } else {
      LearnSlot(name, root[0].integer(), root[2].integer(), root[3]);
      group.Chore(root[4].integer());
      LearnFailed(name, root[5]);
      if (static_cast<size_t>(changed) >= most) {
        group.stale = true;
        advancing->more = true;
      }
    }
    DoWaitingChores(advancing);
    LeaveAdvance(advancing);
  });
}

void RedisStore::DoWaitingChores(const std::shared_ptr<Advancing>& advancing) {
  while (!advancing->answered && advancing->budget > 0 && !advancing->waiting.empty()) {
    const auto [group, name] = std::move(advancing->waiting.front());
    advancing->waiting.pop_front();
    if (group->mine && group->epoch != 0) DoChores(*group, name, advancing);
  }
}

void RedisStore::LeaveAdvance(const std::shared_ptr<Advancing>& advancing) {
  if (advancing && !advancing->answered) {
    if (--advancing->left == 0) AnswerAdvance(advancing);
  } else if (changed_) {
    changed_();
  }
}

void RedisStore::LeaveFailed(std::optional<Error>& trouble, Error error, const std::shared_ptr<Advancing>& advancing) {
  const bool known = trouble.has_value();
  trouble = std::move(error);
  const bool waits = advancing && !advancing->answered;
  if (waits && !advancing->error) advancing->error = trouble;
  // Only the first failure calls for another round: asking again and again at once would not help.
  if (waits || !known) LeaveAdvance(advancing);
}

void RedisStore::AnswerAdvance(std::shared_ptr<Advancing> advancing) {
  advancing->answered = true;
  for (const auto& [group, name] : advancing->waiting) group->stale = advancing->more = true;
  rounds_.erase(advancing);
  Advanced advanced;
  if (!advancing->reports) {
    advanced.trouble = std::move(advancing->error);
    return advancing->done(std::move(advanced));
  }
  for (const std::string& name : std::exchange(to_report_, {})) {
    TopicSlots* slots = FindTopic(name);
    if (slots == nullptr || slots->ready.empty() || slots->topic.paused || slots->reported) continue;
    advanced.ready.push_back(name);
    slots->reported = true;
  }
  SetNext(advanced, advancing->now);
  advanced.more = advancing->more;
  advanced.trouble = Trouble();
  advanced.cut_off = advanced.trouble && CutOff();
  advancing->done(std::move(advanced));
}

void RedisStore::SetNext(Advanced& advanced, Moment now) const {
  const IoTime io_now = clock_.IoNow();
  for (const Group* const group : looked_) {
    if (group->Watched(io_now)) {
      const auto beat_late = std::chrono::ceil<Millis>(group->WatchedUntil() - io_now);
      if (!group->wanted.empty()) advanced.next_steady = std::min(advanced.next_steady, now.steady + beat_late);
      continue;
    }
    if (group->Slow(io_now)) continue;  // its answer will say
    const int64_t redis_ms = RedisNow(*group, now);
    for (const int64_t ms : {group->next_ms, group->mine ? group->chore_ms : -1, group->mine ? group->look_ms : -1}) {
      if (ms < 0) continue;
      const Millis wait(std::max<int64_t>(ms - redis_ms, 1));
      advanced.next_steady = std::min(advanced.next_steady, now.steady + wait);
      advanced.next_utc = std::min(advanced.next_utc, now.utc + wait);
    }
  }
}

bool RedisStore::CutOff() const {
  const IoTime now = clock_.IoNow();
  bool cut_off = false;
  for (const Group* const group : looked_) {
    if (group->Watched(now)) continue;
    // One that was not asked lately, because it is not its turn, says nothing. Nor does one that may still answer:
    // while all servers are away, another group is asked every second.
    const bool lately = now - group->asked_at < 2 * kScanEvery;
    if (group->Slow(now)) {
      cut_off = cut_off || lately || group->scans > 0;
    } else if (lately && group->scans == 0) {
      return false;
    }
  }
  return cut_off;
}

std::optional<Error> RedisStore::Trouble() const {
  for (const Group* const group : looked_) {
    if (group->trouble) return group->trouble;
  }
  return topics_trouble_;
}

void RedisStore::CheckTopics(std::shared_ptr<Advancing> advancing) {
  if (checking_topics_) return;
  checking_topics_ = true;
  topics_stale_ = false;  // later changes are seen by a message, and by the version
  if (topics_trouble_) advancing = nullptr;
  if (advancing) ++advancing->left;
  if (const auto [names, told] = TopicsTold(); !names.empty()) return ReadTold(names, told, advancing);
  const auto waits_no_longer = [now = clock_.Now().steady](const auto& lost) { return lost.second <= now; };
  if (std::ranges::any_of(lost_, waits_no_longer)) topics_version_ = kUnknownVersion;  // are they missing still?
  Command command("MGET", keys_.topics_version);
  command.Add(keys_.groups);
  Send(std::move(command), [this, advancing](Result<Reply> reply) {
    const int64_t version = reply ? ParseMs(reply->root()[0].text()) : -1;
    if (reply) CheckGroups(reply->root()[1].text());
    if (reply && version != topics_version_) return ReadTopics(version, advancing);
    checking_topics_ = false;
    topics_stale_ = topics_stale_ || !reply;
    if (!reply) return LeaveFailed(topics_trouble_, std::move(reply).error(), advancing);
    topics_trouble_.reset();
    LeaveAdvance(advancing);
  });
}

void RedisStore::CountTopics() {
  Send(Command("HLEN", keys_.topics), [this](Result<Reply> reply) {
    if (!reply) return;
    const auto only_unreadable = [this](const std::string& name) { return FindTopic(name) == nullptr; };
    const auto known = std::ssize(topics_) + static_cast<int64_t>(std::ranges::count_if(unreadable_, only_unreadable));
    const bool fewer = reply->root().integer() < known;
    // Once, it may be a topic that was dropped just now.
    if (std::exchange(counted_fewer_, fewer) && fewer) TopicsAreStale();
  });
}

void RedisStore::CheckGroups(std::string_view stored) {
  const std::string number = options_.groups.Text();
  if (stored == number) {
    other_groups_ = false;
    return;
  }
  if (stored.empty()) {  // lost: a node that starts must not choose another one
    Command command("SET", keys_.groups);
    command.Add(number).Add("NX");
    return Send(std::move(command), [](const Result<Reply>&) {});
  }
  if (std::exchange(other_groups_, true)) return;
  LogError(
      "{} in Redis is {}, but this node has been working with {} groups: nodes that start now do not see its jobs. "
      "Stop those, set the key to {}, and give all nodes the same redis.groups",
      keys_.groups, stored, number, number);
}

void RedisStore::ReadTopics(int64_t version, const std::shared_ptr<Advancing>& advancing) {
  Send(Command("HGETALL", keys_.topics), [this, version, advancing](Result<Reply> reply) {
    checking_topics_ = false;
    if (!reply) {
      topics_stale_ = true;
      return LeaveFailed(topics_trouble_, std::move(reply).error(), advancing);
    }
    topics_trouble_.reset();
    const int64_t since = std::exchange(topics_version_, version);  // a change since then has raised it again
    TakeTopics(reply->root(), since);
    LeaveAdvance(advancing);
  });
}

void RedisStore::OwnGroups(const std::vector<uint32_t>& groups) {
  std::vector<bool> owned(tags_.size());
  for (const uint32_t number : groups) owned[number] = true;
  for (const auto& group : groups_) {
    if (!group) continue;
    if (!owned[group->number]) group->epoch = 0;
    group->mine = owned[group->number];
    Listen(*group);
  }
  looked_stale_ = true;
  tell_now_ = true;
  TakeGroups();
}

void RedisStore::TakeGroups() {
  for (const auto& group : groups_) {
    if (group && group->mine && group->epoch == 0 && !group->taking) TakeGroup(*group);
  }
}

void RedisStore::TakeGroup(Group& group) {
  Command command = group.keys.Call(Lua<"take">(), {Part::kOwner});
  command.Add(options_.node);
  group.taking = true;
  Send(std::move(command), [this, &group](Result<Reply> reply) {
    group.taking = false;
    if (!group.mine) return;
    if (!reply) {
      // The next scan of all groups tries again. Log it once: it may fail for all groups, and for long.
      if (!std::exchange(take_failed_, true)) {
        LogWarn("cannot take group {}, trying again every second: {}", group.number, reply.error().message);
      }
      return;
    }
    take_failed_ = false;
    group.epoch = static_cast<uint64_t>(reply->root().integer());
    group.seen_epoch = group.epoch;
    group.owner = options_.node;
    group.stale = true;
    tell_now_ = true;
    group.wanted.clear();  // a later owner is told again what this node wants
    Unkeep(group);
    group.CompareSoon();
    if (changed_) changed_();
  });
}

void RedisStore::LoseGroup(Group& group) {
  LogDebug("group {} was taken by another node", group.number);  // the server logs how many were
  group.epoch = 0;
  group.mine = false;
  looked_stale_ = true;
  tell_now_ = true;
  Listen(group);
  if (group_lost_) group_lost_();
}

std::vector<GroupState> RedisStore::Groups() const {
  std::vector<GroupState> all;
  for (const auto& group : groups_) {
    if (!group) continue;
    GroupState& state = all.emplace_back();
    state.group = group->number;
    state.mine = group->mine && group->epoch != 0;
    state.owner = group->owner;
    if (!group->owner.empty()) state.epoch = group->seen_epoch;
    state.slots = group->busy_slots;
    if (group->busy_slots > 0 && group->next_ms >= 0) state.next_due = FromMs(group->next_ms);
  }
  return all;
}

std::vector<StoreServer> RedisStore::Servers() const {
  std::vector<StoreServer> all;
  for (const ServerHealth& server : client_.Health()) {
    all.push_back({.endpoint = server.endpoint.Text(),
                   .role = server.role,
                   .connected = server.connected,
                   .state = server.state,
                   .round_trip = server.last_round_trip});
  }
  return all;
}

}  // namespace tocsin::redis
