// RedisStore: what is due, the upkeep of owned groups, and what other nodes have changed.
#include "base/log.h"
#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

constexpr Millis kScanEvery{1'000};
constexpr int64_t kSlotsAtOnce = 1000;  // of one group in one script; the next one goes on from there
constexpr size_t kChoresMax = 500;      // jobs in one script
constexpr auto kSlotPartsAndOwner = {Part::kMeta,  Part::kStore, Part::kJob,  Part::kNext, Part::kPrepare,
                                     Part::kDead,  Part::kEnded, Part::kId,   Part::kNote, Part::kCount,
                                     Part::kEvent, Part::kChore, Part::kOwner};
// Slots whose figures a node reads again with every scan of all, because other nodes change them too.
constexpr size_t kFiguresEachScan = 16;

}  // namespace

/// A round of scans, and of the chores that they found.
struct RedisStore::Advancing {
  Moment now;
  IoTime began{};
  Done<Advanced> done;
  size_t budget = 0;
  bool reports = false;   // it answers an Advance; otherwise it only scans
  bool answered = false;  // perhaps before all parts were
  bool more = false;
  size_t left = 1;
  std::optional<Error> error;
};

std::shared_ptr<RedisStore::Advancing> RedisStore::MakeAdvancing(Moment now, Done<Advanced> done) {
  auto advancing = std::make_shared<Advancing>(now, clock_.IoNow(), std::move(done));
  rounds_.insert(advancing);
  return advancing;
}

void RedisStore::Advance(Moment now, size_t budget, Done<Advanced> done) {
  GiveUpWaiting();
  auto advancing = MakeAdvancing(now, std::move(done));
  advancing->budget = budget;
  advancing->reports = true;
  const bool all = now.steady >= scan_all_at_;
  if (all) scan_all_at_ = now.steady + kScanEvery;
  for (const auto& group : groups_) {
    if (!group || (!all && !group->Expects(RedisNow(*group, now)))) continue;
    if (group->scans > 0 && group->Slow(advancing->began)) continue;  // its answer calls for another round
    ScanGroup(*group, now, group->trouble ? nullptr : advancing, {});
  }
  if (options_.shard == 0 && (all || topics_stale_)) CheckTopics(advancing);
  if (all) {
    RefreshFigures();
    TakeGroups();
  }
  LeaveAdvance(advancing);
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

void RedisStore::ScanGroup(Group& group, Moment now, const std::shared_ptr<Advancing>& advancing, From from) {
  Command command = group.keys.Call(Lua<"scan">(), {Part::kNext, Part::kChore, Part::kOwner});
  AddNow(command, now);
  command.Add(kSlotsAtOnce).Add(from.last).Add(from.score);
  group.stale = false;
  if (group.scans++ == 0) group.waits_since = clock_.IoNow();
  if (advancing) ++advancing->left;
  Send(std::move(command), [this, &group, now, advancing, messages = group.messages](Result<Reply> reply) {
    --group.scans;
    group.waits_since = clock_.IoNow();
    if (!reply) {
      group.stale = true;
      return LeaveFailed(group.trouble, std::move(reply).error(), advancing);
    }
    group.trouble.reset();
    const int64_t told_ms = messages == group.messages ? -1 : group.next_ms;
    Scanned(group, reply->root(), advancing);
    // A message, which has its own connection, may have overtaken an answer that does not know of its job yet.
    group.Due(told_ms);
    const ReplyView due = reply->root()[1];
    const std::string_view full = reply->root()[8].text();
    if (!full.empty()) ScanGroup(group, now, advancing, {due[due.size() - 1].text(), full});
    LeaveAdvance(advancing);
  });
}

void RedisStore::Scanned(Group& group, const ReplyView& reply, const std::shared_ptr<Advancing>& advancing) {
  LearnTime(group, reply[0].integer());
  for (size_t i = 0; i < reply[1].size(); ++i) {
    const auto [slots, slot] = FindSlot(reply[1][i].text());
    if (slot != nullptr) MarkReady(*slots, *slot);
  }
  group.next_ms = reply[2].integer();
  group.chore_ms = reply[4].integer();
  group.seen_epoch = static_cast<uint64_t>(reply[5].integer());
  group.owner = reply[6].text();
  group.busy_slots = static_cast<size_t>(reply[7].integer());
  if (!group.mine || group.epoch == 0) return;
  // If there are chores, their answers tell of a new owner. If there are none, this has to: a node that its coordinator
  // has lost would otherwise go on pushing beside the new owner.
  if (reply[3].size() == 0 && group.seen_epoch > group.epoch) return LoseGroup(group);
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
    group.stale = true;
    advancing->more = true;
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
    if (changed < 0) {
      LoseGroup(group);
    } else {
      LearnSlot(name, root[0].integer(), root[2].integer(), root[3]);
      group.Chore(root[4].integer());
      if (static_cast<size_t>(changed) >= most) {
        group.stale = true;
        advancing->more = true;
      }
    }
    LeaveAdvance(advancing);
  });
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
  advanced.cut_off = std::ranges::all_of(groups_, [](const auto& group) { return !group || group->trouble; });
  advancing->done(std::move(advanced));
}

void RedisStore::SetNext(Advanced& advanced, Moment now) const {
  const IoTime io_now = clock_.IoNow();
  for (const auto& group : groups_) {
    if (!group || group->Slow(io_now)) continue;  // its answer will say
    const int64_t redis_ms = RedisNow(*group, now);
    for (const int64_t ms : {group->next_ms, group->mine ? group->chore_ms : -1}) {
      if (ms < 0) continue;
      const Millis wait(std::max<int64_t>(ms - redis_ms, 1));
      advanced.next_steady = std::min(advanced.next_steady, now.steady + wait);
      advanced.next_utc = std::min(advanced.next_utc, now.utc + wait);
    }
  }
}

std::optional<Error> RedisStore::Trouble() const {
  for (const auto& group : groups_) {
    if (group && group->trouble) return group->trouble;
  }
  return topics_trouble_;
}

void RedisStore::CheckTopics(std::shared_ptr<Advancing> advancing) {
  if (checking_topics_) return;
  checking_topics_ = true;
  topics_stale_ = false;  // later changes are seen by a message, and by the version
  if (topics_trouble_) advancing = nullptr;
  if (advancing) ++advancing->left;
  Send(Command("GET", keys_.topics_version), [this, advancing](Result<Reply> reply) {
    const int64_t version = reply ? ParseMs(reply->root().text()) : -1;
    if (reply && version != topics_version_) return ReadTopics(version, advancing);
    checking_topics_ = false;
    topics_stale_ = topics_stale_ || !reply;
    if (!reply) return LeaveFailed(topics_trouble_, std::move(reply).error(), advancing);
    topics_trouble_.reset();
    LeaveAdvance(advancing);
  });
}

void RedisStore::ReadTopics(int64_t version, const std::shared_ptr<Advancing>& advancing) {
  Send(Command("HGETALL", keys_.topics), [this, version, advancing](Result<Reply> reply) {
    checking_topics_ = false;
    if (!reply) {
      topics_stale_ = true;
      return LeaveFailed(topics_trouble_, std::move(reply).error(), advancing);
    }
    topics_trouble_.reset();
    topics_version_ = version;  // a change since then has raised it again
    TakeTopics(reply->root());
    LeaveAdvance(advancing);
  });
}

void RedisStore::TakeTopics(const ReplyView& reply) {
  topic_changes_.changed.clear();  // those that were not taken yet are found again below, as they are now
  std::set<std::string_view> stored;
  for (size_t i = 0; i + 1 < reply.size(); i += 2) {
    const std::string_view name = reply[i].text();
    stored.insert(name);
    auto topic = DecodeTopic(name, reply[i + 1].text());
    if (!topic) {
      LogError("cannot read a topic that another node has written: {}", topic.error().message);
      continue;
    }
    const TopicSlots* slots = FindTopic(name);
    const bool same_life = slots != nullptr && slots->topic.birth == topic->birth;
    if (same_life && slots->topic == *topic) continue;
    // Created again, or set back by a failover that lost a change: what is known here is not its predecessor.
    if (slots != nullptr && (!same_life || slots->topic.version >= topic->version)) {
      topic_changes_.dropped.emplace_back(name);
      ForgetTopic(name);
    }
    topic_changes_.changed.push_back(*std::move(topic));
  }
  std::vector<std::string> gone;
  for (const auto& [name, slots] : topics_) {
    if (!stored.contains(name)) gone.push_back(name);
  }
  for (std::string& name : gone) {
    ForgetTopic(name);
    topic_changes_.dropped.push_back(std::move(name));
  }
}

void RedisStore::RefreshFigures() {
  auto& [topic, number] = refresh_from_;
  figures_share_ += kFiguresEachScan;
  size_t most = figures_share_ / options_.shards;
  figures_share_ %= options_.shards;
  auto at = topics_.lower_bound(topic);
  for (size_t ended = 0; most > 0 && ended < topics_.size();) {
    if (at == topics_.end()) at = topics_.begin();
    if (at->first != topic) refresh_from_ = {at->first, 0};
    const auto slot = at->second.by_number.lower_bound(number);
    if (slot == at->second.by_number.end()) {
      number = 0;
      ++at;
      ++ended;
      continue;
    }
    number = slot->first + 1;
    --most;
    // An error needs no report: the scan itself says that Redis is away.
    ReadSlot(topic, slot->first, FiguresOf(*slot->second), [](const Result<void>&) {});
  }
}

void RedisStore::OnMessage(std::string_view message) {
  if (message == kMessageTopics) {
    topics_stale_ = true;
    if (options_.shard == 0 && changed_) changed_();
    return;
  }
  const size_t space = message.find(' ');
  if (space == std::string_view::npos) return;
  const int64_t number = ParseMs(message.substr(0, space));
  if (number < 0 || number >= int64_t{kGroups} || !groups_[static_cast<size_t>(number)]) return;
  Group& group = *groups_[static_cast<size_t>(number)];
  ++group.messages;
  group.Due(ParseMs(message.substr(space + 1)));
  if (changed_) changed_();
}

void RedisStore::OwnGroups(const std::vector<uint32_t>& groups) {
  for (const auto& group : groups_) {
    if (!group) continue;
    const bool mine = std::ranges::find(groups, group->number) != groups.end();
    if (!mine) group->epoch = 0;
    group->mine = mine;
  }
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
    group.stale = true;
    if (changed_) changed_();
  });
}

void RedisStore::LoseGroup(Group& group) {
  LogInfo("group {} was taken by another node", group.number);
  group.epoch = 0;
  group.mine = false;
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
