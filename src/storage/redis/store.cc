#include "storage/redis/store.h"

#include <random>

#include "base/episode.h"
#include "base/result.h"

namespace tocsin::redis {
namespace {

uint64_t Number(const ReplyView& reply) {
  if (reply.kind() == Kind::kInteger) return static_cast<uint64_t>(reply.integer());
  uint64_t number = 0;
  const std::string_view text = reply.text();
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Error ErrorOf(std::string_view text) {
  const auto begins = [&](std::string_view word) { return text.substr(0, word.size()) == word; };
  if (begins(kUnreplicated)) return {Code::kUnavailable, std::string(text.substr(kUnreplicated.size() + 1)), {}};
  Code code = Code::kUnavailable;
  if (begins("OOM") || begins("MISCONF")) code = Code::kStorageFull;
  if (begins("ERR")) code = Code::kInternal;
  return {code, fmt::format("Redis refused: {}", text), {}};
}

/// Redis is at maxmemory, or cannot write to its disk. One episode for all stores of the node; its end is that nothing
/// was refused for a while.
void NoteFull(std::string_view why, IoTime now) {
  constexpr Millis kQuiet{5'000};
  static Episode full("redis_full", kQuiet);
  const LogField fields[] = {{"error", why}, {"new_jobs", "refused"}};
  full.Begin(now, fields);
}

}  // namespace

TopicFigures TopicSlots::Figures() const {
  TopicFigures sum;
  sum.topic = topic;
  sum.worst = worst;
  for (const auto& [number, slot] : by_number) {
    const auto& now = slot->figures.numbers;
    const auto& opened = slot->opened.numbers;
    sum.scheduled += slot->figures.live() - now[1] - now[2];
    sum.leased += now[1];
    sum.dead += now[2];
    sum.ready += now[4];
    sum.bytes += now[5];
    sum.oldest_due = std::min(sum.oldest_due, slot->oldest_due);
    sum.recovered += slot->opened.live();
    uint64_t TopicFigures::* const counts[] = {
        &TopicFigures::accepted, &TopicFigures::delivered, &TopicFigures::acked,
        &TopicFigures::nacked,   &TopicFigures::expired,   &TopicFigures::died,
        &TopicFigures::redriven, &TopicFigures::cancelled, &TopicFigures::purged};
    for (size_t i = 0; i < std::size(counts); ++i) {
      sum.*counts[i] += now[6 + i] - std::min(opened[6 + i], now[6 + i]);  // Redis may have lost some
    }
  }
  return sum;
}

RedisStore::RedisStore(Client& client, const Clock& clock, StoreOptions options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      keys_(options_.prefix),
      tags_(options_.prefix, options_.groups),
      groups_(options_.groups.count),
      who_(fmt::format("{:08x}{:08x}", std::random_device{}(), std::random_device{}())),
      allowances_(tags_, clock,
                  [this](Command command, Answer answer) { Send(std::move(command), std::move(answer)); }),
      put_back_after_(1'000 + std::random_device{}() % 1'000) {
  TOCSIN_CHECK(options_.groups.count % options_.shards == 0 && options_.shard < options_.shards);
  for (uint32_t number = options_.shard; number < options_.groups.count; number += options_.shards) {
    groups_[number] = std::make_unique<Group>(options_.prefix, tags_, number, client_.HasShards());
  }
}

void RedisStore::HearOthers() {
  if (std::exchange(hears_, true)) return;
  client_.OnUp([this] {
    ++listens_;
    tell_now_ = tell_all_ = true;
    Publish(BeatChannel(options_.prefix), kMessageAsk);
    plain_.clear();
    for (const auto& group : groups_) {
      if (!group) continue;
      group->stale = true;
      if (group->Watched(clock_.IoNow())) WantAll(*group);  // its owner may have told us meanwhile, in vain
      group->CompareSoon();
    }
    // Another server may have lost changes, with their version numbers.
    topics_version_ = kUnknownVersion;
    topics_stale_ = true;
    if (changed_) changed_();
  });
  const auto heard = [this](std::string_view, std::string_view message) { OnMessage(message); };
  client_.Subscribe(keys_.channel, heard);
  client_.Subscribe(BeatChannel(options_.prefix), heard);
  client_.SubscribeShard(ChannelTo(who_), heard);
}

void RedisStore::Open(Done<void> done) {
  HearOthers();
  Send(Command("HGETALL", keys_.topics), [this, done = std::move(done)](Result<Reply> reply) mutable {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    const ReplyView root = reply->root();
    const auto gather = Join(std::move(done));
    for (size_t i = 0; i + 1 < root.size(); i += 2) {
      auto topic = DecodeTopic(root[i].text(), root[i + 1].text());
      if (topic) KeepTopic(*topic);  // or a later program has written it, and serves it; TakeTopics logs it
    }
    for (const auto& group : groups_) {
      if (group) ReadAllFigures(*group, gather);
    }
    gather->Leave();
  });
}

void RedisStore::Send(Command command, Answer answer) {
  client_.Call(std::move(command), [this, answer = std::move(answer)](Result<Reply> reply) mutable {
    Receive(std::move(reply), std::move(answer));
  });
}

void RedisStore::Receive(Result<Reply> reply, Answer answer) {
  if (!reply || reply->kind() != Kind::kError) return answer(std::move(reply));
  const std::string_view text = reply->root().text();
  if (!text.starts_with(kErrorGone)) {
    Error error = ErrorOf(text);
    if (error.code == Code::kStorageFull) NoteFull(text, clock_.IoNow());
    return answer(std::unexpected(std::move(error)));
  }
  CheckLife(text.substr(kErrorGone.size()));
  answer(Fail(Code::kUnavailable, "the topic of slot {} was dropped through another node: try again",
              text.substr(kErrorGone.size())));
}

void RedisStore::SendToOpen(const Slot& slot, Command command, Answer answer) {
  if (slot.open) return Send(std::move(command), std::move(answer));
  Command again = command;
  client_.Call(std::move(command), [this, name = slot.name, again = std::move(again),
                                    answer = std::move(answer)](Result<Reply> reply) mutable {
    const bool refused = reply && reply->kind() == Kind::kError;
    if (!refused || !reply->root().text().starts_with(kErrorGone)) {
      if (const auto [slots, sent] = FindSlot(name); sent != nullptr) sent->open = reply && !refused;
      return Receive(std::move(reply), std::move(answer));
    }
    CheckLife(name, [this, again = std::move(again), answer = std::move(answer)]() mutable {
      Send(std::move(again), std::move(answer));
    });
  });
}

void RedisStore::AddNow(Command& command, Moment now) const {
  options_.clock == ClockSource::kCaller ? command.Add(ToMs(now.utc)) : command.Add("");
}

Command RedisStore::SlotCall(const Script& script, const Slot& slot, Moment now,
                             std::initializer_list<Part> parts) const {
  Command command = slot.keys.Call(script, parts);
  AddNow(command, now);
  command.Add(slot.name).Add(groups_[slot.group]->channel).Add(int64_t{slot.group});
  return command;
}

int64_t RedisStore::RedisNow(const Group& group, Moment now) const {
  return options_.clock == ClockSource::kCaller ? ToMs(now.utc) : ToMs(now.steady) + group.clock.ahead_ms();
}

void RedisStore::LearnTime(Group& group, int64_t redis_ms) {
  const Moment now = clock_.Now();
  group.clock.Add(redis_ms - ToMs(now.steady), now.steady);
}

TopicSlots* RedisStore::FindTopic(std::string_view topic) {
  const auto found = topics_.find(topic);
  return found == topics_.end() ? nullptr : &found->second;
}

TopicSlots& RedisStore::KeepTopic(const StoredTopic& topic) {
  TopicSlots& slots = topics_[topic.name];
  if (slots.topic.birth != topic.birth) {
    CountInGroups(slots, false);
    slots = TopicSlots{};  // forget the topic's earlier life
  }
  slots.topic = topic;
  const bool fresh = slots.by_number.empty();
  for (uint32_t number = 0; number < topic.slots; ++number) {
    if (tags_.GroupOf(topic.name, number) % options_.shards != options_.shard) continue;
    if (slots.by_number.contains(number)) continue;
    slots.by_number.emplace(number, std::make_unique<Slot>(tags_, topic.name, number));
  }
  if (fresh) CountInGroups(slots, true);
  // It may go on after a pause: tell those who wait.
  slots.reported = false;
  if (!slots.ready.empty()) to_report_.insert(topic.name);
  TellOfTopic(slots, fresh);
  return slots;
}

bool RedisStore::AdoptTopic(const HeardTopic& topic) {
  const TopicSlots* const known = FindTopic(topic.name);
  if (known != nullptr && known->topic.birth > topic.life) return false;
  if (known != nullptr && known->topic.birth == topic.life && known->topic.version >= topic.version) {
    return known->topic == topic;
  }
  TopicSlots& slots = KeepTopic(StoredTopic{Topic(topic), topic.life});
  for (const auto& [number, slot] : slots.by_number) {
    if (topic.born) slot->See();
  }
  return true;
}

void RedisStore::CountInGroups(const TopicSlots& slots, bool in) {
  looked_stale_ = true;
  for (const auto& [number, slot] : slots.by_number) {
    Group& group = *groups_[slot->group];
    if (in) {
      group.slots.emplace(slot->name, slot.get());
    } else {
      group.slots.erase(slot->name);
      group.due.erase(slot.get());
    }
    if (number >= tags_.size()) continue;  // its group has a slot of the topic already
    in ? ++group.topics : --group.topics;
  }
}

RedisStore::Found RedisStore::FindSlot(std::string_view topic, uint32_t number) {
  TopicSlots* slots = FindTopic(topic);
  return {slots, slots == nullptr ? nullptr : slots->Find(number)};
}

RedisStore::Found RedisStore::FindSlot(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) return {};
  uint32_t number = 0;
  std::from_chars(name.data() + slash + 1, name.data() + name.size(), number);
  return FindSlot(name.substr(0, slash), number);
}

void RedisStore::Learn(Slot& slot, const ReplyView& figures) {
  for (size_t i = 0; i < SlotFigures::kNumbers && i < figures.size(); ++i) slot.figures.numbers[i] = Number(figures[i]);
  if (slot.figures.numbers[4] == 0) slot.oldest_due = kNever;
}

bool RedisStore::Serves(const TopicSlots& slots, const Slot& slot) const {
  const Group& group = *groups_[slot.group];
  return !slots.topic.delivery.Pushes() || group.Mine();
}

void RedisStore::MarkReady(TopicSlots& slots, const Slot& slot) {
  if (!Serves(slots, slot)) return;
  slots.ready.insert(slot.number);
  if (!slots.reported) to_report_.insert(slots.topic.name);
}

void RedisStore::MarkEmpty(TopicSlots& slots, uint32_t slot) {
  slots.ready.erase(slot);
  if (slots.ready.empty()) slots.reported = false;
}

void RedisStore::LearnChange(const TopicSlots& slots, Slot& slot, const ReplyView& figures) {
  const SlotFigures before = slot.figures;
  Learn(slot, figures);
  slot.learned_at = clock_.IoNow();
  if (slot.figures.ended() > before.ended() || slot.figures.bytes() < before.bytes())
    allowances_.Freed(slots.topic, slot.number);
}

void RedisStore::LearnFigures(std::string_view slot, const ReplyView& figures) {
  if (const auto [slots, known] = FindSlot(slot); known != nullptr) LearnChange(*slots, *known, figures);
}

void RedisStore::LearnSlot(std::string_view slot, int64_t now_ms, int64_t head_ms, const ReplyView& figures,
                           bool claimed) {
  const auto [slots, known] = FindSlot(slot);
  if (known == nullptr) return;
  Group& group = *groups_[known->group];
  LearnTime(group, now_ms);
  LearnChange(*slots, *known, figures);
  LearnOldest(*known, head_ms, now_ms);
  if (head_ms < 0 || head_ms > now_ms) {
    MarkEmpty(*slots, known->number);
    known->offered.clear();
    return group.Due(head_ms);
  }
  // Of what was only submitted, the owner tells; and what another node was told of is that node's.
  if (!claimed && (group.Mine() ? !known->offered.empty() : group.Watched(clock_.IoNow()))) return;
  MarkReady(*slots, *known);
  if (claimed) ShareRest(*slots, *known);
}

void RedisStore::LearnOldest(Slot& slot, int64_t head_ms, int64_t now_ms) {
  Group& group = *groups_[slot.group];
  const bool due = head_ms >= 0 && head_ms <= now_ms && !group.Watched(clock_.IoNow());
  slot.oldest_due = due ? FromMs(head_ms) : kNever;
  if (due) {
    group.due.insert(&slot);
  } else {
    group.due.erase(&slot);
  }
}

void RedisStore::ForgetOldest(Group& group) {
  for (Slot* const slot : std::exchange(group.due, {})) slot->oldest_due = kNever;
}

void RedisStore::LearnFailed(std::string_view slot, const ReplyView& failures) {
  const auto [slots, known] = FindSlot(slot);
  if (known == nullptr) return;
  ForgetFailed(slot, failures[6].text());
  const Time now = clock_.Now().steady;
  for (const bool died : {false, true}) {
    const size_t at = died ? 3 : 0;
    const auto attempts = static_cast<uint32_t>(failures[at].integer());
    if (attempts == 0) continue;
    const uint64_t sequence = SequenceOf(failures[at + 1].text()).value_or(0);
    const Millis rest(failures[at + 2].integer());
    slots->worst.Take({.attempts = attempts,
                       .uid = sequence << kSlotBits | known->number,
                       .at = now,
                       .until = now + rest + slots->topic.lease},
                      died);
  }
}

void RedisStore::ForgetFailed(std::string_view slot, std::string_view members) {
  if (members.empty()) return;
  const auto [slots, known] = FindSlot(slot);
  if (known == nullptr) return;
  for (; !members.empty(); members.remove_prefix(kMemberBytes)) {
    const uint64_t sequence = SequenceOf(members.substr(0, kMemberBytes)).value_or(0);
    slots->worst.Forget(sequence << kSlotBits | known->number);
  }
}

void RedisStore::ReadSlot(const std::string& topic, uint32_t number, Command command, Done<void> done) {
  Send(std::move(command), [this, topic, number, done = std::move(done)](Result<Reply> reply) mutable {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    if (const auto [slots, slot] = FindSlot(topic, number); slot != nullptr) {
      Learn(*slot, reply->root()[1]);
      slot->See();
      slot->open = true;
    }
    done({});
  });
}

std::optional<TopicFigures> RedisStore::FindFigures(std::string_view topic) const {
  const auto at = topics_.find(topic);
  return at == topics_.end() ? std::nullopt : std::optional(at->second.Figures());
}

TopicsPage RedisStore::TopicsFrom(std::string_view cursor, size_t limit) const {
  TopicsPage page;
  auto at = topics_.lower_bound(cursor);
  for (; at != topics_.end() && page.topics.size() < limit; ++at) page.topics.push_back(at->second.Figures());
  if (at != topics_.end()) page.cursor = at->first;
  return page;
}

}  // namespace tocsin::redis
