// RedisStore: what is due, what has to be looked after, and what other nodes have changed.
#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "storage/redis/calls.h"
#include "storage/redis/record.h"
#include "storage/redis/scripts.h"
#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

constexpr Millis kScanEvery{1'000};
constexpr int64_t kSlotsAtOnce = 1000;  // of one group in one script; the next one goes on from there
constexpr size_t kChoresMax = 500;      // jobs in one script
constexpr size_t kFiguresEachScan =
    16;  // of a node: slots whose figures are read again, because other nodes change them too

}  // namespace

/// A round of scans under way, and of the chores that they found.
struct RedisStore::Advancing {
  Moment now;
  size_t budget = 0;
  bool reports = false;  // otherwise it only looks
  size_t left = 1;
  Advanced advanced;
  std::optional<Error> error;
  Done<Advanced> done;
};

std::shared_ptr<RedisStore::Advancing> RedisStore::MakeAdvancing(Moment now, Done<Advanced> done) {
  auto advancing = std::make_shared<Advancing>();
  advancing->now = now;
  advancing->done = std::move(done);
  return advancing;
}

void RedisStore::Advance(Moment now, size_t budget, Done<Advanced> done) {
  auto advancing = MakeAdvancing(now, std::move(done));
  advancing->budget = budget;
  advancing->reports = true;
  const bool all = now.steady >= scan_all_at_;
  if (all) scan_all_at_ = now.steady + kScanEvery;
  const int64_t redis_ms = RedisNow(now);
  for (const auto& group : groups_) {
    if (group && (all || group->Expects(redis_ms))) ScanGroup(*group, advancing);
  }
  if (options_.shard == 0 && (all || topics_stale_)) CheckTopics(advancing);
  if (all) RefreshFigures();
  LeaveAdvance(advancing);
}

void RedisStore::ScanGroup(Group& group, const std::shared_ptr<Advancing>& advancing, std::string_view last,
                           std::string_view score) {
  Command command = group.keys.Call(scripts::Scan(), {Part::kNext, Part::kChore, Part::kOwner});
  AddNow(command, advancing->now);
  command.Add(kSlotsAtOnce).Add(last).Add(score);
  group.stale = false;
  ++advancing->left;
  Send(std::move(command), [this, &group, advancing, messages = group.messages](Result<Reply> reply) {
    if (!reply) {
      group.stale = true;
      if (!advancing->error) advancing->error = std::move(reply).error();
    } else {
      const int64_t told_ms = messages == group.messages ? -1 : group.next_ms;
      Scanned(group, reply->root(), advancing);
      // A message on its own connection may have overtaken an answer that does not know of its job yet.
      group.Due(told_ms);
      const ReplyView due = reply->root()[1];
      const std::string_view full = reply->root()[8].text();
      if (!full.empty()) ScanGroup(group, advancing, due[due.size() - 1].text(), full);
    }
    LeaveAdvance(advancing);
  });
}

void RedisStore::Scanned(Group& group, const ReplyView& reply, const std::shared_ptr<Advancing>& advancing) {
  LearnTime(reply[0].integer());
  for (size_t i = 0; i < reply[1].size(); ++i) {
    const auto [shelf, slot] = FindSlot(reply[1][i].text());
    if (slot != nullptr) MarkReady(*shelf, slot->number);
  }
  group.next_ms = reply[2].integer();
  group.chore_ms = reply[4].integer();
  group.seen_epoch = static_cast<uint64_t>(reply[5].integer());
  group.owner = reply[6].text();
  group.busy_slots = static_cast<size_t>(reply[7].integer());
  if (!group.mine || group.epoch == 0 || !advancing->reports) return;
  for (size_t i = 0; i < reply[3].size(); ++i) DoChores(group, reply[3][i].text(), advancing);
}

void RedisStore::DoChores(Group& group, std::string_view name, const std::shared_ptr<Advancing>& advancing) {
  const auto [shelf, slot] = FindSlot(name);
  if (slot == nullptr) return;
  if (advancing->budget == 0) {
    group.stale = true;
    advancing->advanced.more = true;
    return;
  }
  const size_t most = std::min(advancing->budget, kChoresMax);
  advancing->budget -= most;
  Command command = slot->keys.Call(
      scripts::Chores(), {Part::kMeta, Part::kStore, Part::kJob, Part::kNext, Part::kPrepare, Part::kDead, Part::kEnded,
                          Part::kId, Part::kNote, Part::kChore, Part::kOwner, Part::kCount, Part::kEvent});
  AddNow(command, advancing->now);
  command.Add(slot->name).Add(int64_t{slot->number}).Add(static_cast<int64_t>(group.epoch));
  command.Add(static_cast<int64_t>(most));
  command.Add(shelf->topic.backoff_base.count()).Add(shelf->topic.backoff_max.count()).Add(options_.node);
  command.Add(keys_.channel).Add(int64_t{slot->group});
  ++advancing->left;
  Send(std::move(command), [this, &group, advancing, name = slot->name, most](Result<Reply> reply) {
    if (!reply) {
      group.stale = true;
      if (!advancing->error) advancing->error = std::move(reply).error();
      return LeaveAdvance(advancing);
    }
    const ReplyView root = reply->root();
    const int64_t changed = root[1].integer();
    if (changed < 0) {
      Refused(group);
    } else {
      LearnSlot(name, root[0].integer(), root[2].integer(), root[3]);
      group.Chore(root[4].integer());
      if (static_cast<size_t>(changed) >= most) {
        group.stale = true;
        advancing->advanced.more = true;
      }
    }
    LeaveAdvance(advancing);
  });
}

void RedisStore::LeaveAdvance(const std::shared_ptr<Advancing>& advancing) {
  if (--advancing->left > 0) return;
  if (advancing->error) return advancing->done(std::unexpected(std::move(*advancing->error)));
  if (!advancing->reports) return advancing->done(std::move(advancing->advanced));
  Advanced& advanced = advancing->advanced;
  for (const std::string& name : std::exchange(to_report_, {})) {
    Shelf* shelf = FindShelf(name);
    if (shelf == nullptr || shelf->ready.empty() || shelf->topic.paused || shelf->reported) continue;
    advanced.ready.push_back(name);
    shelf->reported = true;
  }
  const int64_t redis_ms = RedisNow(advancing->now);
  int64_t next_ms = -1;
  const auto consider = [&](int64_t ms) {
    if (ms >= 0 && (next_ms < 0 || ms < next_ms)) next_ms = ms;
  };
  for (const auto& group : groups_) {
    if (!group) continue;
    consider(group->next_ms);
    if (group->mine) consider(group->chore_ms);
  }
  if (next_ms >= 0) {
    const Millis wait(std::max<int64_t>(next_ms - redis_ms, 1));
    advanced.next_steady = advancing->now.steady + wait;
    advanced.next_utc = advancing->now.utc + wait;
  }
  advancing->done(std::move(advanced));
}

void RedisStore::CheckTopics(const std::shared_ptr<Advancing>& advancing) {
  ++advancing->left;
  Send(Command("GET", keys_.topics_version), [this, advancing](Result<Reply> reply) {
    if (!reply) {
      if (!advancing->error) advancing->error = std::move(reply).error();
      return LeaveAdvance(advancing);
    }
    const int64_t version = ParseMs(reply->root().text());
    if (version == topics_version_) {
      topics_stale_ = false;
      return LeaveAdvance(advancing);
    }
    ReadTopics(version, advancing);
  });
}

void RedisStore::ReadTopics(int64_t version, const std::shared_ptr<Advancing>& advancing) {
  Send(Command("HGETALL", keys_.topics), [this, version, advancing](Result<Reply> reply) {
    if (!reply) {
      if (!advancing->error) advancing->error = std::move(reply).error();
    } else {
      topics_version_ = version;  // what changed meanwhile has raised it again
      topics_stale_ = false;
      TakeTopics(reply->root(), advancing->advanced);
    }
    LeaveAdvance(advancing);
  });
}

void RedisStore::TakeTopics(const ReplyView& reply, Advanced& advanced) {
  std::set<std::string_view> stored;
  for (size_t i = 0; i + 1 < reply.size(); i += 2) {
    const std::string_view name = reply[i].text();
    stored.insert(name);
    auto topic = DecodeTopic(name, reply[i + 1].text());
    if (!topic) {
      LogError("a topic that another node has written is left out: {}", topic.error().message);
      continue;
    }
    const Shelf* shelf = FindShelf(name);
    if (shelf != nullptr && shelf->topic.version >= topic->version) continue;
    advanced.topics.push_back(*std::move(topic));
  }
  for (const auto& [name, shelf] : shelves_) {
    if (!stored.contains(name)) advanced.dropped.push_back(name);
  }
  for (const std::string& name : advanced.dropped) ForgetTopic(name);
}

void RedisStore::RefreshFigures() {
  if (shelves_.empty()) return;
  auto at = shelves_.upper_bound(refresh_from_);
  size_t slots = 0;
  const size_t most = std::max<size_t>(kFiguresEachScan / options_.shards, 1);
  for (size_t seen = 0; seen < shelves_.size() && slots < most; ++seen, ++at) {
    if (at == shelves_.end()) at = shelves_.begin();
    slots += at->second.slots.size();
    refresh_from_ = at->first;
    // What fails here is read again with the next round; the scan itself says that Redis is away.
    ReadFigures(at->first, [](const Result<void>&) {});
  }
}

void RedisStore::Heard(std::string_view message) {
  if (message == "topics") {
    topics_stale_ = true;
    if (options_.shard == 0 && news_) news_();
    return;
  }
  const size_t space = message.find(' ');
  if (space == std::string_view::npos) return;
  const int64_t number = ParseMs(message.substr(0, space));
  if (number < 0 || number >= int64_t{kGroups} || !groups_[static_cast<size_t>(number)]) return;
  Group& group = *groups_[static_cast<size_t>(number)];
  ++group.messages;
  group.Due(ParseMs(message.substr(space + 1)));
  if (news_) news_();
}

void RedisStore::Own(const std::vector<uint32_t>& groups) {
  for (const auto& group : groups_) {
    if (!group) continue;
    const bool mine = std::ranges::find(groups, group->number) != groups.end();
    if (!mine) group->epoch = 0;
    group->mine = mine;
    if (mine && group->epoch == 0 && !group->taking) TakeGroup(*group);
  }
}

void RedisStore::TakeGroup(Group& group) {
  Command command = group.keys.Call(scripts::Take(), {Part::kOwner});
  command.Add(options_.node);
  group.taking = true;
  Send(std::move(command), [this, &group](Result<Reply> reply) {
    group.taking = false;
    if (!group.mine) return;
    if (!reply) {
      // Nothing was answered, so nothing is known: whoever asks for the members anew hands the group out again.
      LogWarn("group {} could not be taken: {}", group.number, reply.error().message);
      if (refused_) refused_();
      return;
    }
    group.epoch = static_cast<uint64_t>(reply->root().integer());
    group.stale = true;
    if (news_) news_();
  });
}

void RedisStore::Refused(Group& group) {
  LogInfo("group {} was taken by another node", group.number);
  group.epoch = 0;
  group.mine = false;
  if (refused_) refused_();
}

std::vector<GroupState> RedisStore::Groups() const {
  std::vector<GroupState> all;
  for (const auto& group : groups_) {
    if (!group) continue;
    all.push_back({.group = group->number,
                   .mine = group->mine && group->epoch != 0,
                   .owner = group->owner,
                   .epoch = group->seen_epoch,
                   .busy_slots = group->busy_slots,
                   .next = group->next_ms < 0 ? kNever : FromMs(group->next_ms)});
  }
  return all;
}

}  // namespace tocsin::redis
