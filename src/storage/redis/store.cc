#include "storage/redis/store.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/log.h"
#include "storage/redis/gather.h"
#include "storage/redis/record.h"
#include "storage/redis/scripts.h"

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

/// What the scripts that add jobs say, with the slot's name.
constexpr std::string_view kGone = "GONE ";

constexpr auto kDropped = {Part::kNext,    Part::kChore, Part::kMeta,  Part::kStore, Part::kJob,
                           Part::kPrepare, Part::kDead,  Part::kEnded, Part::kId,    Part::kNote,
                           Part::kCount,   Part::kEvent, Part::kRoom,  Part::kClaim};

/// One more answer to wait for.
Done<void> OneMore(const std::shared_ptr<Gather<char>>& gather) {
  ++gather->left;
  return [gather](Result<void> part) {
    if (!part) return gather->Fail(std::move(part).error());
    gather->Leave();
  };
}

}  // namespace

TopicFigures Shelf::Figures() const {
  TopicFigures sum;
  sum.topic = topic;
  for (const auto& [number, slot] : slots) {
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
      rooms_(options_.prefix, clock,
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
    // Another server may have lost changes, and the numbers that they had.
    topics_version_ = -1;
    topics_stale_ = true;
    if (changed_) changed_();
  });
  client_.Subscribe(keys_.channel, [this](std::string_view, std::string_view message) { Heard(message); });
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
      for (const auto& [number, slot] : MakeShelf(*topic).slots) {
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
    if (!text.starts_with(kGone)) return answer(std::unexpected(ErrorOf(text)));
    CheckLife(text.substr(kGone.size()));
    answer(Fail(Code::kUnavailable, "the topic of slot {} was dropped through another node: try again",
                text.substr(kGone.size())));
  });
}

void RedisStore::AddNow(Command& command, Moment now) const {
  if (options_.clock == ClockSource::kCaller) {
    command.Add(ToMs(now.utc));
  } else {
    command.Add("");
  }
}

int64_t RedisStore::RedisNow(const Group& group, Moment now) const {
  return ToMs(now.utc) + (options_.clock == ClockSource::kCaller ? 0 : group.clock.ahead_ms());
}

void RedisStore::LearnTime(Group& group, int64_t redis_ms) {
  const Moment now = clock_.Now();
  group.clock.Add(redis_ms - ToMs(now.utc), now.steady);
}

Shelf* RedisStore::FindShelf(std::string_view topic) {
  const auto found = shelves_.find(topic);
  return found == shelves_.end() ? nullptr : &found->second;
}

Shelf& RedisStore::MakeShelf(const StoredTopic& topic) {
  Shelf& shelf = shelves_[topic.name];
  if (shelf.topic.birth != topic.birth) shelf = Shelf{};  // what is known of an earlier life counts no more
  shelf.topic = topic;
  for (uint32_t number = 0; number < topic.slots; ++number) {
    if (GroupOf(topic.name, number) % options_.shards != options_.shard || shelf.slots.contains(number)) continue;
    shelf.slots.emplace(number, std::make_unique<Slot>(options_.prefix, topic.name, number));
  }
  // It may go on after a pause: who waits is told.
  shelf.reported = false;
  if (!shelf.ready.empty()) to_report_.insert(topic.name);
  return shelf;
}

std::pair<Shelf*, Slot*> RedisStore::FindSlot(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) return {};
  Shelf* shelf = FindShelf(name.substr(0, slash));
  uint32_t number = 0;
  std::from_chars(name.data() + slash + 1, name.data() + name.size(), number);
  return {shelf, shelf == nullptr ? nullptr : shelf->Find(number)};
}

void RedisStore::Learn(Slot& slot, const ReplyView& figures) {
  for (size_t i = 0; i < SlotFigures::kNumbers && i < figures.size(); ++i) slot.figures.numbers[i] = Number(figures[i]);
}

bool RedisStore::Serves(const Shelf& shelf, const Slot& slot) const {
  const Group& group = *groups_[slot.group];
  return !shelf.topic.delivery.Pushes() || (group.mine && group.epoch != 0);
}

void RedisStore::MarkReady(Shelf& shelf, const Slot& slot) {
  if (!Serves(shelf, slot)) return;
  shelf.ready.insert(slot.number);
  if (!shelf.reported) to_report_.insert(shelf.topic.name);
}

void RedisStore::MarkEmpty(Shelf& shelf, uint32_t slot) {
  shelf.ready.erase(slot);
  if (shelf.ready.empty()) shelf.reported = false;
}

void RedisStore::LearnChange(const Shelf& shelf, Slot& slot, const ReplyView& figures) {
  const SlotFigures before = slot.figures;
  Learn(slot, figures);
  if (slot.figures.ended() > before.ended() || slot.figures.bytes() < before.bytes())
    rooms_.Freed(shelf.topic, slot.number);
}

void RedisStore::LearnFigures(std::string_view slot, const ReplyView& figures) {
  if (const auto [shelf, known] = FindSlot(slot); known != nullptr) LearnChange(*shelf, *known, figures);
}

void RedisStore::LearnSlot(std::string_view slot, int64_t now_ms, int64_t head_ms, const ReplyView& figures) {
  const auto [shelf, known] = FindSlot(slot);
  if (known == nullptr) return;
  LearnTime(*groups_[known->group], now_ms);
  LearnChange(*shelf, *known, figures);
  if (head_ms >= 0 && head_ms <= now_ms) {
    MarkReady(*shelf, *known);
  } else {
    MarkEmpty(*shelf, known->number);
    groups_[known->group]->Due(head_ms);
  }
}

Command RedisStore::FiguresOf(const Slot& slot) const {
  Command command = slot.keys.Call(scripts::Figures(),
                                   {Part::kMeta, Part::kStore, Part::kJob, Part::kPrepare, Part::kDead, Part::kEnded});
  AddNow(command, clock_.Now());
  return command;
}

Command RedisStore::OpeningOf(const Slot& slot, uint64_t birth) const {
  Command command = slot.keys.Call(scripts::OpenSlot(), kDropped);
  AddNow(command, clock_.Now());
  command.Add(slot.name).Add(static_cast<int64_t>(birth));
  return command;
}

void RedisStore::ReadSlot(const std::string& topic, uint32_t number, Command command, Done<void> done) {
  Send(std::move(command), [this, topic, number, done = std::move(done)](Result<Reply> reply) mutable {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    Shelf* shelf = FindShelf(topic);
    if (Slot* slot = shelf == nullptr ? nullptr : shelf->Find(number); slot != nullptr) {
      Learn(*slot, reply->root()[1]);
      if (!slot->seen) slot->opened = slot->figures;
      slot->seen = true;
    }
    done({});
  });
}

void RedisStore::OpenSlots(const std::string& topic, Done<void> done) {
  const Shelf& shelf = *FindShelf(topic);
  const auto gather = Join(std::move(done));
  for (const auto& [number, slot] : shelf.slots) {
    ReadSlot(topic, number, OpeningOf(*slot, shelf.topic.birth), OneMore(gather));
  }
  gather->Leave();
}

void RedisStore::CheckLife(std::string_view slot_name) {
  const auto [shelf, slot] = FindSlot(slot_name);
  if (slot == nullptr || slot->checking) return;
  slot->checking = true;
  Command command("HGET", keys_.topics);
  command.Add(shelf->topic.name);
  Send(std::move(command), [this, name = std::string(slot_name)](Result<Reply> reply) {
    const auto [known, checked] = FindSlot(name);
    if (checked == nullptr) return;
    checked->checking = false;
    if (!reply) return;
    const auto stored = DecodeTopic(known->topic.name, reply->root().text());
    if (!stored || stored->birth != known->topic.birth) return TopicsAreStale();
    // It lives: a failover has lost that the slot was opened, and with it all that came later.
    ReadSlot(known->topic.name, checked->number, OpeningOf(*checked, known->topic.birth), [](const Result<void>&) {});
  });
}

void RedisStore::TopicsAreStale() {
  topics_version_ = -1;
  topics_stale_ = true;
  if (options_.shard == 0 && changed_) changed_();
}

std::vector<TopicFigures> RedisStore::Topics() const {
  std::vector<TopicFigures> all;
  all.reserve(shelves_.size());
  for (const auto& [name, shelf] : shelves_) all.push_back(shelf.Figures());
  return all;
}

void RedisStore::PutTopic(const Topic& topic, Done<void> done) {
  const Shelf* known = FindShelf(topic.name);
  Command command(scripts::PutTopic(), 2, keys_.topics);
  command.Add(keys_.topics_version).Add(keys_.channel).Add(topic.name);
  command.Add(EncodeTopic(topic)).Add(EncodeBirth(known == nullptr ? 0 : known->topic.birth));
  Send(std::move(command), [this, name = topic.name, done = std::move(done)](Result<Reply> reply) mutable {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    const auto stored = DecodeTopic(name, reply->root()[1].text());
    if (!stored) return done(std::unexpected(stored.error()));
    MakeShelf(*stored);
    if (reply->root()[0].integer() != 0) return OpenSlots(name, std::move(done));
    done(FailField(Code::kConflict, "topic", "another node has changed topic {} to version {}", name, stored->version));
  });
}

void RedisStore::DropTopic(std::string_view topic, Done<void> done) {
  if (const Shelf* shelf = FindShelf(topic); shelf != nullptr) {
    Dropping& dropping = dropping_[std::string(topic)];
    dropping.birth = shelf->topic.birth;
    dropping.slots = std::max(dropping.slots, shelf->topic.slots);
  }
  const auto dropping = dropping_.find(topic);
  if (dropping == dropping_.end()) return done({});
  // The name goes first: what is refused by its slots afterwards finds no topic there either.
  Command command(scripts::DropTopic(), 2, keys_.topics);
  command.Add(keys_.topics_version).Add(keys_.channel).Add(topic).Add(EncodeBirth(dropping->second.birth));
  Send(std::move(command), [this, name = std::string(topic), done = std::move(done)](Result<Reply> reply) mutable {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    if (reply->root()[0].integer() != 0) return DropSlots(name, std::move(done));
    const auto stored = DecodeTopic(name, reply->root()[1].text());
    if (!stored) return done(std::unexpected(stored.error()));
    MakeShelf(*stored);
    done(FailField(Code::kConflict, "topic", "another node has dropped topic {} and made it again", name));
  });
}

void RedisStore::DropSlots(const std::string& topic, Done<void> done) {
  const Dropping dropping = dropping_[topic];
  const Shelf* shelf = FindShelf(topic);
  if (shelf != nullptr && shelf->topic.birth == dropping.birth) ForgetTopic(topic);
  const auto gather = Join([this, topic, done = std::move(done)](Result<void> all) mutable {
    if (all) dropping_.erase(topic);
    done(std::move(all));
  });
  for (uint32_t number = 0; number < dropping.slots; ++number) {
    if (GroupOf(topic, number) % options_.shards != options_.shard) continue;
    const Slot slot(options_.prefix, topic, number);
    Command command = slot.keys.Call(scripts::DropSlot(), kDropped);
    command.Add(slot.name).Add(static_cast<int64_t>(dropping.birth));
    Send(std::move(command), [answered = OneMore(gather)](Result<Reply> reply) mutable {
      if (!reply) return answered(std::unexpected(std::move(reply).error()));
      answered({});
    });
  }
  gather->Leave();
}

void RedisStore::ForgetTopic(std::string_view topic) {
  if (const auto found = shelves_.find(topic); found != shelves_.end()) shelves_.erase(found);
}

}  // namespace tocsin::redis
