#include "storage/redis/store.h"

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
  Code code = Code::kUnavailable;
  if (begins("OOM") || begins("MISCONF")) code = Code::kStorageFull;
  if (begins("ERR")) code = Code::kInternal;
  return {code, fmt::format("Redis refused: {}", text), {}};
}

constexpr auto kDropped = {Part::kNext,    Part::kChore, Part::kMeta,  Part::kStore, Part::kJob,
                           Part::kPrepare, Part::kDead,  Part::kEnded, Part::kId,    Part::kNote,
                           Part::kCount,   Part::kEvent, Part::kRoom,  Part::kClaim};

}  // namespace

TopicFigures TopicSlots::Figures() const {
  TopicFigures sum;
  sum.topic = topic;
  for (const auto& [number, slot] : by_number) {
    const auto& now = slot->figures.numbers;
    const auto& opened = slot->opened.numbers;
    sum.scheduled += slot->figures.live() - now[1] - now[2];
    sum.leased += now[1];
    sum.dead += now[2];
    sum.ready += now[4];
    sum.bytes += now[5];
    sum.recovered += slot->opened.live();
    uint64_t TopicFigures::* const counts[] = {
        &TopicFigures::accepted, &TopicFigures::delivered, &TopicFigures::acked,
        &TopicFigures::nacked,   &TopicFigures::expired,   &TopicFigures::died,
        &TopicFigures::redriven, &TopicFigures::cancelled, &TopicFigures::purged};
    for (size_t i = 0; i < std::size(counts); ++i) sum.*counts[i] += now[6 + i] - opened[6 + i];
  }
  return sum;
}

RedisStore::RedisStore(Client& client, const Clock& clock, StoreOptions options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      keys_(options_.prefix),
      groups_(kGroups),
      allowances_(options_.prefix, clock,
                  [this](Command command, Answer answer) { Send(std::move(command), std::move(answer)); }) {
  TOCSIN_CHECK(kGroups % options_.shards == 0 && options_.shard < options_.shards);
  for (uint32_t number = options_.shard; number < kGroups; number += options_.shards) {
    groups_[number] = std::make_unique<Group>(options_.prefix, number);
  }
}

void RedisStore::Open(Done<void> done) {
  client_.OnUp([this] {
    for (const auto& group : groups_) {
      if (group) group->stale = true;
    }
    // Another server may have lost changes, with their version numbers.
    topics_version_ = -1;
    topics_stale_ = true;
    if (changed_) changed_();
  });
  client_.Subscribe(keys_.channel, [this](std::string_view, std::string_view message) { OnMessage(message); });
  Send(Command("HGETALL", keys_.topics), [this, done = std::move(done)](Result<Reply> reply) mutable {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    const ReplyView root = reply->root();
    const auto gather = Join(std::move(done));
    for (size_t i = 0; i + 1 < root.size(); i += 2) {
      auto topic = DecodeTopic(root[i].text(), root[i + 1].text());
      if (!topic) {
        gather->error = std::move(topic).error();
        break;
      }
      for (const auto& [number, slot] : KeepTopic(*topic).by_number) {
        ReadSlot(topic->name, number, FiguresOf(*slot), OneMore(gather));
      }
    }
    gather->Leave();
  });
}

void RedisStore::Send(Command command, Answer answer) {
  client_.Call(std::move(command), [this, answer = std::move(answer)](Result<Reply> reply) mutable {
    if (!reply || reply->kind() != Kind::kError) return answer(std::move(reply));
    const std::string_view text = reply->root().text();
    if (!text.starts_with(kErrorGone)) return answer(std::unexpected(ErrorOf(text)));
    CheckLife(text.substr(kErrorGone.size()));
    answer(Fail(Code::kUnavailable, "the topic of slot {} was dropped through another node: try again",
                text.substr(kErrorGone.size())));
  });
}

void RedisStore::AddNow(Command& command, Moment now) const {
  options_.clock == ClockSource::kCaller ? command.Add(ToMs(now.utc)) : command.Add("");
}

Command RedisStore::SlotCall(const Script& script, const Slot& slot, Moment now,
                             std::initializer_list<Part> parts) const {
  Command command = slot.keys.Call(script, parts);
  AddNow(command, now);
  command.Add(slot.name).Add(keys_.channel).Add(int64_t{slot.group});
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
  if (slots.topic.birth != topic.birth) slots = TopicSlots{};  // forget the topic's earlier life
  slots.topic = topic;
  for (uint32_t number = 0; number < topic.slots; ++number) {
    if (GroupOf(topic.name, number) % options_.shards != options_.shard || slots.by_number.contains(number)) continue;
    slots.by_number.emplace(number, std::make_unique<Slot>(options_.prefix, topic.name, number));
  }
  // It may go on after a pause: tell those who wait.
  slots.reported = false;
  if (!slots.ready.empty()) to_report_.insert(topic.name);
  return slots;
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
}

bool RedisStore::Serves(const TopicSlots& slots, const Slot& slot) const {
  const Group& group = *groups_[slot.group];
  return !slots.topic.delivery.Pushes() || (group.mine && group.epoch != 0);
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
  if (slot.figures.ended() > before.ended() || slot.figures.bytes() < before.bytes())
    allowances_.Freed(slots.topic, slot.number);
}

void RedisStore::LearnFigures(std::string_view slot, const ReplyView& figures) {
  if (const auto [slots, known] = FindSlot(slot); known != nullptr) LearnChange(*slots, *known, figures);
}

void RedisStore::LearnSlot(std::string_view slot, int64_t now_ms, int64_t head_ms, const ReplyView& figures) {
  const auto [slots, known] = FindSlot(slot);
  if (known == nullptr) return;
  LearnTime(*groups_[known->group], now_ms);
  LearnChange(*slots, *known, figures);
  if (head_ms >= 0 && head_ms <= now_ms) {
    MarkReady(*slots, *known);
  } else {
    MarkEmpty(*slots, known->number);
    groups_[known->group]->Due(head_ms);
  }
}

Command RedisStore::FiguresOf(const Slot& slot) const {
  Command command = slot.keys.Call(Lua<"figures">(),
                                   {Part::kMeta, Part::kStore, Part::kJob, Part::kPrepare, Part::kDead, Part::kEnded});
  AddNow(command, clock_.Now());
  return command;
}

Command RedisStore::OpeningOf(const Slot& slot, uint64_t birth) const {
  Command command = slot.keys.Call(Lua<"open_slot">(), kDropped);
  AddNow(command, clock_.Now());
  command.Add(slot.name).Add(static_cast<int64_t>(birth));
  return command;
}

void RedisStore::ReadSlot(const std::string& topic, uint32_t number, Command command, Done<void> done) {
  Send(std::move(command), [this, topic, number, done = std::move(done)](Result<Reply> reply) mutable {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    if (const auto [slots, slot] = FindSlot(topic, number); slot != nullptr) {
      Learn(*slot, reply->root()[1]);
      if (!slot->seen) slot->opened = slot->figures;
      slot->seen = true;
    }
    done({});
  });
}

void RedisStore::OpenSlots(const std::string& topic, Done<void> done) {
  const TopicSlots& slots = *FindTopic(topic);
  const auto gather = Join(std::move(done));
  for (const auto& [number, slot] : slots.by_number) {
    ReadSlot(topic, number, OpeningOf(*slot, slots.topic.birth), OneMore(gather));
  }
  gather->Leave();
}

void RedisStore::CheckLife(std::string_view slot_name) {
  const auto [slots, slot] = FindSlot(slot_name);
  if (slot == nullptr || slot->checking) return;
  slot->checking = true;
  Command command("HGET", keys_.topics);
  command.Add(slots->topic.name);
  Send(std::move(command), [this, name = std::string(slot_name)](Result<Reply> reply) {
    const auto [known, checked] = FindSlot(name);
    if (checked == nullptr) return;
    checked->checking = false;
    if (!reply) return;
    const auto stored = DecodeTopic(known->topic.name, reply->root().text());
    if (!stored || stored->birth != known->topic.birth) return TopicsAreStale();
    // The topic lives: a failover has lost the opening of the slot, and everything after it.
    ReadSlot(known->topic.name, checked->number, OpeningOf(*checked, known->topic.birth), [](const Result<void>&) {});
  });
}

void RedisStore::TopicsAreStale() {
  topics_version_ = -1;
  topics_stale_ = true;
  if (options_.shard == 0 && changed_) changed_();
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

void RedisStore::PutTopic(const Topic& topic, Done<void> done) {
  const TopicSlots* known = FindTopic(topic.name);
  Command command(Lua<"put_topic">(), 2, keys_.topics);
  command.Add(keys_.topics_version).Add(keys_.channel).Add(topic.name);
  command.Add(EncodeTopic(topic)).Add(EncodeBirth(known == nullptr ? 0 : known->topic.birth));
  command.Add(static_cast<int64_t>(options_.topics));
  Send(std::move(command), [this, name = topic.name, done = std::move(done)](Result<Reply> reply) mutable {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    if (reply->root()[0].integer() < 0) return done(TooManyTopics(options_.topics));
    const auto stored = DecodeTopic(name, reply->root()[1].text());
    if (!stored) return done(std::unexpected(stored.error()));
    KeepTopic(*stored);
    if (reply->root()[0].integer() != 0) return OpenSlots(name, std::move(done));
    done(FailField(Code::kConflict, "topic", "another node has changed topic {} to version {}", name, stored->version));
  });
}

void RedisStore::DropTopic(std::string_view topic, Done<void> done) {
  if (const TopicSlots* slots = FindTopic(topic); slots != nullptr) {
    Dropping& dropping = dropping_[std::string(topic)];
    dropping.birth = slots->topic.birth;
    dropping.slots = std::max(dropping.slots, slots->topic.slots);
  }
  const auto dropping = dropping_.find(topic);
  if (dropping == dropping_.end()) return done({});
  // Remove the name first: a node whose jobs the slots then refuse finds no topic either.
  Command command(Lua<"drop_topic">(), 2, keys_.topics);
  command.Add(keys_.topics_version).Add(keys_.channel).Add(topic).Add(EncodeBirth(dropping->second.birth));
  Send(std::move(command), [this, name = std::string(topic), done = std::move(done)](Result<Reply> reply) mutable {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    if (reply->root()[0].integer() != 0) return DropSlots(name, std::move(done));
    const auto stored = DecodeTopic(name, reply->root()[1].text());
    if (!stored) return done(std::unexpected(stored.error()));
    KeepTopic(*stored);
    done(FailField(Code::kConflict, "topic", "another node has dropped topic {} and made it again", name));
  });
}

void RedisStore::DropSlots(const std::string& topic, Done<void> done) {
  const Dropping dropping = dropping_[topic];
  const TopicSlots* slots = FindTopic(topic);
  if (slots != nullptr && slots->topic.birth == dropping.birth) ForgetTopic(topic);
  const auto gather = Join([this, topic, done = std::move(done)](Result<void> all) mutable {
    if (all) dropping_.erase(topic);
    done(std::move(all));
  });
  for (uint32_t number = 0; number < dropping.slots; ++number) {
    if (GroupOf(topic, number) % options_.shards != options_.shard) continue;
    const Slot slot(options_.prefix, topic, number);
    Command command = slot.keys.Call(Lua<"drop_slot">(), kDropped);
    command.Add(slot.name).Add(static_cast<int64_t>(dropping.birth));
    Send(std::move(command), OneMore(gather));
  }
  gather->Leave();
}

void RedisStore::ForgetTopic(std::string_view topic) {
  if (const auto found = topics_.find(topic); found != topics_.end()) topics_.erase(found);
}

}  // namespace tocsin::redis
