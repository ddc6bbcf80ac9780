// RedisStore: the groups that this node looks at, and what it tells the other nodes of them (channels.h).
//
// A store beats once a second for all its groups: who owns which is told when it changes, in full now and then, and to
// everybody who asks. So a beat costs no command of its own, and is as long as what is new.
#include "base/log.h"
#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

// Scans of each second, over all nodes, that nothing but caution calls for. With more groups than that they take turns.
constexpr size_t kTurnsEachSecond = 64;
constexpr size_t kTurnsOfANode = 8;          // also if that makes more over all nodes
constexpr int64_t kTellAllEvery = 15;        // seconds
constexpr Millis kTellFiguresEvery{30'000};  // of a slot, also if they are the same: a message may have been lost
constexpr Millis kFiguresEvery{3'000};       // of one group
constexpr int kTellAgain = 2;                // times, after figures have changed: others may have passed over the first
constexpr Millis kOwnFiguresKept{1'000};     // figures that this node got itself, against those that an owner tells
constexpr size_t kFiguresAtOnce = 32;        // slots in one script
constexpr size_t kMessageBytes = 60'000;     // of one message with figures, about
constexpr auto kFiguresParts = {Part::kMeta, Part::kStore, Part::kJob,  Part::kPrepare,
                                Part::kDead, Part::kEnded, Part::kCount};

/// Gives the next `most` of the groups, which are sorted, their turns; `from` is where the next turns begin.
void GiveTurns(const std::vector<Group*>& groups, bool Group::* turn, size_t most, uint32_t& from) {
  auto at = std::ranges::lower_bound(groups, from, {}, &Group::number);
  for (size_t i = 0; i < std::min(most, groups.size()); ++i) {
    if (at == groups.end()) at = groups.begin();
    (*at)->*turn = true;
    from = (*at)->number + 1;
    ++at;
  }
}

}  // namespace

const std::vector<Group*>& RedisStore::LookedAt() {
  const IoTime now = clock_.IoNow();
  if (!std::exchange(looked_stale_, false) && now < looked_until_) return looked_;
  looked_.clear();
  looked_until_ = IoTime::max();
  for (const auto& group : groups_) {
    if (!group || (!group->mine && group->slots.empty())) continue;
    const bool watched = group->Watched(now);
    if (watched) looked_until_ = std::min(looked_until_, group->WatchedUntil());
    if (!watched || !group->wanted.empty()) looked_.push_back(group.get());
  }
  return looked_;
}

void RedisStore::GiveAllTurns() {
  looked_stale_ = true;
  std::vector<Group*> used, empty;
  for (Group* const group : LookedAt()) {
    if (!group->mine) {
      group->turn = group->figures_turn = true;  // nobody else looks at it
    } else {
      (group->slots.empty() ? empty : used).push_back(group);
    }
  }
  const size_t mine = used.size() + empty.size();
  const size_t share = (kTurnsEachSecond * mine + tags_.size() - 1) / tags_.size();
  GiveTurns(used, &Group::turn, std::max(share, kTurnsOfANode / options_.shards), used_from_);
  GiveTurns(used, &Group::figures_turn, share, figures_from_);
  GiveTurns(empty, &Group::turn, 1, empty_from_);  // somebody may have left a topic there that nobody knows
}

std::string RedisStore::MakeBeat() {
  tell_now_ = false;
  const bool all = std::exchange(tell_all_, false) || seconds_ % kTellAllEvery == 0;
  const IoTime now = clock_.IoNow();
  std::string beat =
      fmt::format("{} {} {} {} {}", kMessageBeat, who_, listens_, options_.node, all ? kBeatAll : kBeatNew);
  for (const auto& group : groups_) {
    if (!group) continue;
    const GroupWord word = group->Says(now);
    const bool known = word == std::exchange(group->told, word);
    if (all ? word.epoch == 0 : known) continue;
    fmt::format_to(std::back_inserter(beat), " {} {} {} {}", group->number, word.epoch, word.slots, word.next_ms);
  }
  return beat;
}

void RedisStore::HearBeat(std::string_view beat) {
  const std::string_view who = NextWord(beat);
  if (who == who_) return;
  const std::string_view listens = NextWord(beat);
  const std::string_view node = NextWord(beat);
  const bool all = NextWord(beat) == kBeatAll;
  std::shared_ptr<Keeper>& keeper = keepers_[std::string(who)];
  if (!keeper) keeper = std::make_shared<Keeper>();
  keeper->beat_at = clock_.IoNow();
  const bool again = std::exchange(keeper->listens, listens) != listens;  // messages to it may have been lost
  std::set<uint32_t> said;
  while (!beat.empty()) {
    const int64_t number = ParseMs(NextWord(beat));
    const GroupWord word{.epoch = static_cast<uint64_t>(std::max<int64_t>(ParseMs(NextWord(beat)), 0)),
                         .slots = static_cast<size_t>(std::max<int64_t>(ParseMs(NextWord(beat)), 0)),
                         .next_ms = ParseMs(NextWord(beat))};
    if (number < 0 || number >= int64_t{tags_.size()} || !groups_[static_cast<size_t>(number)]) continue;
    HearOfGroup(*groups_[static_cast<size_t>(number)], keeper, node, word);
    if (all) said.insert(static_cast<uint32_t>(number));
  }
  if (!all && !again) return;
  for (const auto& group : groups_) {
    if (!group || group->keeper != keeper) continue;
    if (all && !said.contains(group->number)) {
      Unkeep(*group);
    } else if (again) {
      WantAll(*group);
    }
  }
}

void RedisStore::HearOfGroup(Group& group, const std::shared_ptr<Keeper>& keeper, std::string_view node,
                             const GroupWord& word) {
  if (word.epoch == 0) {
    if (group.keeper == keeper) Unkeep(group);
    return;
  }
  if (group.Mine() ? word.epoch <= group.epoch : word.epoch < group.seen_epoch) return;  // it has been replaced
  if (group.Mine()) LoseGroup(group);
  group.seen_epoch = word.epoch;
  group.owner = node;
  group.busy_slots = word.slots;
  group.next_ms = word.next_ms;
  group.trouble.reset();
  if (std::exchange(group.keeper, keeper) == keeper) return;
  ForgetOldest(group);
  looked_stale_ = true;
  WantAll(group);
}

void RedisStore::Unkeep(Group& group) {
  group.keeper.reset();
  looked_stale_ = true;
}

void RedisStore::ForgetKeepers() {
  const IoTime now = clock_.IoNow();
  std::erase_if(keepers_, [&](const auto& each) { return now - each.second->beat_at >= kKeeperKept; });
  std::erase_if(doubted_, [&](const auto& each) { return now - each.second >= Wants::kKept; });
}

void RedisStore::ReadFigures(Group& group, const std::vector<Slot*>& slots, Done<void> done) {
  const size_t keys = 3 + slots.size() * kFiguresParts.size();
  Command command(Lua<"figures">(), keys, group.keys.Of(Part::kTopics));
  command.Add(group.keys.Of(Part::kNext)).Add(group.keys.Of(Part::kChore));
  for (const Slot* slot : slots) {
    for (const Part part : kFiguresParts) command.Add(slot->keys.Of(part));
  }
  AddNow(command, clock_.Now());
  command.Add(group.channel).Add(int64_t{group.number});
  std::vector<std::string> names;
  for (const Slot* slot : slots) command.Add(names.emplace_back(slot->name));
  Send(std::move(command), [this, names = std::move(names), done = std::move(done)](Result<Reply> reply) mutable {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    for (size_t i = 0; i < names.size(); ++i) {
      const auto [topic, slot] = FindSlot(names[i]);
      if (slot == nullptr) continue;
      Learn(*slot, reply->root()[i]);
      const int64_t oldest_ms = reply->root()[i][SlotFigures::kNumbers].integer();
      LearnOldest(*slot, oldest_ms, oldest_ms);
      slot->See();
    }
    done({});
  });
}

void RedisStore::ReadAllFigures(Group& group, const std::shared_ptr<Gather<char>>& gather) {
  std::vector<Slot*> slots;
  for (const auto& [name, slot] : group.slots) {
    slots.push_back(slot);
    if (slots.size() == kFiguresAtOnce) ReadFigures(group, std::exchange(slots, {}), OneMore(gather));
  }
  if (!slots.empty()) ReadFigures(group, slots, OneMore(gather));
}

void RedisStore::RefreshFigures(Group& group, Time now) {
  if (group.slots.empty() || now < group.figures_at) return;
  group.figures_at = now + kFiguresEvery;
  std::vector<Slot*> slots;
  auto at = group.slots.upper_bound(group.figures_from);
  while (slots.size() < std::min(kFiguresAtOnce, group.slots.size())) {
    if (at == group.slots.end()) at = group.slots.begin();
    slots.push_back(at->second);
    ++at;
  }
  group.figures_from = slots.back()->name;
  std::vector<std::string> names;
  for (const Slot* slot : slots) names.push_back(slot->name);
  ++figures_under_way_;
  // An error needs no report: the scan itself says that Redis is away.
  ReadFigures(group, slots, [this, &group, names = std::move(names)](const Result<void>& read) {
    --figures_under_way_;
    for (const std::string& name : names) {
      if (const auto [topic, slot] = FindSlot(name); read && slot != nullptr && group.Mine()) TellFigures(*slot);
    }
    if (figures_under_way_ == 0) PublishFigures();
  });
}

void RedisStore::TellFigures(Slot& slot) {
  const IoTime now = clock_.IoNow();
  if (slot.told != slot.figures.numbers) slot.tell_again = kTellAgain + 1;
  const bool lately = slot.told_at && now - *slot.told_at < kTellFiguresEvery;
  if (lately && slot.tell_again == 0) return;
  slot.tell_again = std::max(slot.tell_again - 1, 0);
  slot.told_at = now;
  slot.told = slot.figures.numbers;
  fmt::format_to(std::back_inserter(figures_news_), " {} {}", slot.name, fmt::join(slot.told, " "));
  if (figures_news_.size() >= kMessageBytes) PublishFigures();
}

void RedisStore::PublishFigures() {
  if (figures_news_.empty()) return;
  Publish(BeatChannel(options_.prefix), std::string(kMessageFigures) + std::exchange(figures_news_, {}));
}

void RedisStore::HearFigures(std::string_view told) {
  const IoTime now = clock_.IoNow();
  while (!told.empty()) {
    const auto [topic, slot] = FindSlot(NextWord(told));
    SlotFigures figures;
    for (uint64_t& number : figures.numbers) number = static_cast<uint64_t>(ParseMs(NextWord(told)));
    if (slot == nullptr || groups_[slot->group]->Mine()) continue;
    // What the owner read may be older than what this node has just heard from Redis. The owner tells it again.
    if (slot->learned_at && now - *slot->learned_at < kOwnFiguresKept) continue;
    slot->figures = figures;
    LearnOldest(*slot, -1, 0);  // the owner of the group shows it
    slot->See();
  }
}

}  // namespace tocsin::redis
