// RedisStore: who looks after a group, and who is told of its due jobs (channels.h).
//
// The owner of a group scans it. Each slot that it finds due it claims from itself if its own consumers wait, or else
// tells one node whose consumers do. A node that was told and cannot use it passes it on. So a job costs one scan and
// one claim, however many nodes wait.
#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

constexpr int64_t kWantsEvery = 15;       // seconds: how often a node says again what it wants
constexpr size_t kMessageBytes = 60'000;  // of one such message, about
constexpr int64_t kGraceMs = 20;          // a node that was told needs this long to claim
constexpr int64_t kLookMaxMs = 1'000;     // between two looks whether anybody has
constexpr size_t kPlainMax = 10'000;      // channels
constexpr Millis kShareEvery{10};         // how often others are told of the rest of one slot, at most

/// The topic's first slot in the group; it may have none with this number.
uint32_t FirstSlotIn(const TopicSlots& slots, uint32_t group, uint32_t groups) {
  const Slot& any = *slots.by_number.begin()->second;
  return (group + groups - any.group + any.number) % groups;
}

}  // namespace

std::string RedisStore::ChannelTo(std::string_view who) const {
  return StoreChannel(options_.prefix, who, client_.HasShards());
}

void RedisStore::Publish(std::string_view channel, std::string_view message) {
  if (!client_.HasShards() || !channel.starts_with('{') || plain_.contains(channel)) {
    return client_.Call(std::move(Command("PUBLISH", channel).Add(message)), [](const Result<Reply>&) {});
  }
  client_.Call(std::move(Command("SPUBLISH", channel).Add(message)),
               [this, channel = std::string(channel), message = std::string(message)](const Result<Reply>& reply) {
                 if (!reply || reply->kind() != Kind::kError) return;
                 // Any other error costs this message: who listens to a sharded channel hears nothing on a plain one.
                 const std::string_view why = reply->root().text();
                 if (!why.starts_with("ERR unknown command") && !why.starts_with("NOPERM")) return;
                 if (plain_.size() >= kPlainMax) plain_.clear();
                 plain_.insert(channel);
                 Publish(channel, message);
               });
}

void RedisStore::Listen(Group& group) {
  if (group.listens == group.mine) return;
  group.listens = group.mine;
  if (group.mine) {
    client_.SubscribeShard(group.channel, [this](std::string_view, std::string_view message) { OnMessage(message); });
  } else {
    client_.Unsubscribe(group.channel);
    group.wants = {};
  }
}

void RedisStore::OnMessage(std::string_view message) {
  const std::string_view first = NextWord(message);
  if (first == kMessageTopics) return HearOfTopic(message);
  if (first == kMessageReady) return HearReady(message);
  if (first == kMessageBeat) return HearBeat(message);
  if (first == kMessageFigures) return HearFigures(message);
  if (first == kMessageAsk) {
    tell_all_ = true;
    return;
  }
  int64_t number = ParseMs(first);
  const bool due = number >= 0;
  if (!due) number = ParseMs(NextWord(message));
  if (number < 0 || number >= int64_t{tags_.size()} || !groups_[static_cast<size_t>(number)]) return;
  Group& group = *groups_[static_cast<size_t>(number)];
  if (!group.mine) return;  // it was lost to another node just now
  if (due) {
    ++group.messages;
    group.Due(ParseMs(message));
  } else if (first == kMessageChore) {
    group.Chore(ParseMs(message));
  } else if (first == kMessageWant) {
    HearWant(group, message);
  } else {
    HearOfRest(group, message, first == kMessagePass);
  }
  if (changed_) changed_();
}

void RedisStore::HearWant(Group& group, std::string_view want) {
  const std::string_view who = NextWord(want);
  Trust(who);
  while (!want.empty() && who != who_) {
    const std::string_view topic = NextWord(want);
    group.wants.Add(topic, who, clock_.IoNow());
    TopicSlots* slots = FindTopic(topic);
    if (slots == nullptr || slots->by_number.empty()) continue;
    uint32_t number = FirstSlotIn(*slots, group.number, tags_.size());
    for (; number < slots->topic.slots; number += tags_.size()) {
      Slot* const slot = slots->Find(number);
      const bool untaken = slot != nullptr && !slot->offered.empty() && Doubted(slot->offered);
      if (untaken || slots->ready.contains(number)) Offer(*slots, *slot);
    }
  }
}

void RedisStore::HearOfRest(Group& group, std::string_view said, bool passed) {
  const std::string_view who = NextWord(said);
  Trust(who);
  const auto [slots, slot] = FindSlot(said);
  if (slot == nullptr || slot->group != group.number) return;
  if (passed) {
    group.wants.Forget(slots->topic.name, who);
  } else {
    group.wants.Add(slots->topic.name, who, clock_.IoNow());
  }
  Offer(*slots, *slot, who);
}

void RedisStore::HearReady(std::string_view name) {
  const auto [slots, slot] = FindSlot(name);
  if (slot == nullptr) return;
  if (groups_[slot->group]->Mine()) {
    Offer(*slots, *slot);
  } else if (hungry_.contains(slots->topic.name)) {
    MarkReady(*slots, *slot);
  } else {
    Pass(*slots, *slot);
  }
  if (changed_) changed_();
}

void RedisStore::Pass(TopicSlots& slots, const Slot& slot) {
  Group& group = *groups_[slot.group];
  MarkEmpty(slots, slot.number);
  // The owner does not tell this node again until it says that it wants to be told.
  if (const auto at = group.wanted.find(slots.topic.name); at != group.wanted.end()) group.wanted.erase(at);
  Publish(group.channel, fmt::format("{} {} {} {}", kMessagePass, group.number, who_, slot.name));
}

void RedisStore::Offer(TopicSlots& slots, Slot& slot, std::string_view except) {
  Group& group = *groups_[slot.group];
  slot.offered.clear();
  const bool stays = slots.topic.paused || slots.topic.delivery.Pushes() || hungry_.contains(slots.topic.name);
  std::string who = stays ? std::string() : NextFor(group, slots.topic.name, except);
  if (who.empty()) return MarkReady(slots, slot);
  MarkEmpty(slots, slot.number);
  Publish(ChannelTo(who), fmt::format("{} {}", kMessageReady, slot.name));
  slot.look_ms = Doubted(who) ? std::min(2 * slot.look_ms, kLookMaxMs) : Slot::kLookMs;
  slot.offered = std::move(who);
  slot.offered_ms = RedisNow(group, clock_.Now());
  group.Look(slot.offered_ms + slot.look_ms);
}

std::string RedisStore::NextFor(Group& group, std::string_view topic, std::string_view except) {
  return group.wants.Next(topic, except, [this](const std::string& who) { return Doubted(who); });
}

bool RedisStore::Doubted(std::string_view who) const {
  if (doubted_.contains(who)) return true;
  // Only stores that own groups beat.
  const auto keeper = keepers_.find(who);
  return keeper != keepers_.end() && clock_.IoNow() - keeper->second->beat_at >= Group::kBeatLost;
}

void RedisStore::Trust(std::string_view who) {
  if (const auto at = doubted_.find(who); at != doubted_.end()) doubted_.erase(at);
}

void RedisStore::FoundDue(Group& group, TopicSlots& slots, Slot& slot, int64_t head_ms, int64_t now_ms) {
  if (!group.Mine()) return MarkReady(slots, slot);
  if (!slot.offered.empty() && head_ms <= slot.offered_ms) {
    const int64_t since = now_ms - slot.offered_ms;
    if (since < kGraceMs) return group.Look(slot.offered_ms + kGraceMs);  // it may be another job
    if (since >= slot.look_ms) doubted_.insert_or_assign(slot.offered, clock_.IoNow());
  }
  Offer(slots, slot);
}

void RedisStore::ShareRest(const TopicSlots& slots, Slot& slot) {
  Group& group = *groups_[slot.group];
  const IoTime now = clock_.IoNow();
  const bool lately = slot.shared_at && now - *slot.shared_at < kShareEvery;
  if (lately || slots.topic.delivery.Pushes()) return;
  if (group.Mine()) {
    const std::string who = NextFor(group, slots.topic.name, {});
    if (who.empty()) return;
    Publish(ChannelTo(who), fmt::format("{} {}", kMessageReady, slot.name));
  } else if (group.Watched(now)) {
    Publish(group.channel, fmt::format("{} {} {} {}", kMessageMore, group.number, who_, slot.name));
  }
  slot.shared_at = now;
}

void RedisStore::SetHungry(std::string_view topic, bool hungry) {
  const auto at = hungry_.find(topic);
  if ((at != hungry_.end()) == hungry) return;
  if (hungry) {
    hungry_.emplace(topic);
  } else {
    hungry_.erase(at);
  }
  TopicSlots* slots = FindTopic(topic);
  if (slots == nullptr) return;
  hungry ? Want(*slots) : GiveAway(*slots);
}

void RedisStore::Want(const TopicSlots& slots) {
  if (slots.topic.delivery.Pushes()) return;
  const IoTime now = clock_.IoNow();
  for (const auto& [number, slot] : slots.by_number) {
    Group& group = *groups_[slot->group];
    if (!group.Watched(now) || !group.wanted.insert(slots.topic.name).second) continue;
    looked_stale_ = true;
    Publish(group.channel, fmt::format("{} {} {} {}", kMessageWant, group.number, who_, slots.topic.name));
  }
}

void RedisStore::WantAll(Group& group) {
  group.wanted.clear();
  const std::string begin = fmt::format("{} {} {}", kMessageWant, group.number, who_);
  std::string message = begin;
  looked_stale_ = true;
  for (const auto& [name, slot] : group.slots) {
    if (!hungry_.contains(slot->topic) || FindTopic(slot->topic)->topic.delivery.Pushes()) continue;
    if (!group.wanted.insert(slot->topic).second) continue;
    message.append(" ").append(slot->topic);
    if (message.size() < kMessageBytes) continue;
    Publish(group.channel, std::exchange(message, begin));
  }
  if (message != begin) Publish(group.channel, message);
}

void RedisStore::RefreshWants() {
  ++seconds_;
  const IoTime now = clock_.IoNow();
  for (const auto& group : groups_) {
    if (!group || group->number % kWantsEvery != seconds_ % kWantsEvery) continue;
    group->wants.Expire(now);
    if (group->Watched(now)) WantAll(*group);
  }
}

void RedisStore::GiveAway(TopicSlots& slots) {
  if (slots.topic.delivery.Pushes()) return;
  const IoTime now = clock_.IoNow();
  const std::vector<uint32_t> ready(slots.ready.begin(), slots.ready.end());
  for (const uint32_t number : ready) {
    Slot& slot = *slots.Find(number);
    const Group& group = *groups_[slot.group];
    if (group.Mine()) {
      Offer(slots, slot);
    } else if (group.Watched(now)) {
      Pass(slots, slot);
    }
  }
}

void RedisStore::TellOfTopic(TopicSlots& slots, bool fresh) {
  hungry_.contains(slots.topic.name) ? Want(slots) : GiveAway(slots);
  if (!fresh) return;
  // A scan may have met a job of it already, and nobody knew what that was.
  for (const auto& [number, slot] : slots.by_number) {
    Group& group = *groups_[slot->group];
    group.stale = group.stale || group.Mine();
  }
  if (changed_) changed_();
}

}  // namespace tocsin::redis
