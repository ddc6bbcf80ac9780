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
    topics_stale_ = true;
    if (news_) news_();
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
      MakeShelf(*topic);
      ++gather->left;
      ReadFigures(topic->name, [gather](Result<void> read) {
        if (!read) return gather->Fail(std::move(read).error());
        gather->Leave();
      });
    }
    gather->Leave();
  });
}

void RedisStore::Send(Command command, Answer answer) {
  client_.Call(std::move(command), [answer = std::move(answer)](Result<Reply> reply) mutable {
    if (reply && reply->kind() == Kind::kError) {
      return answer(std::unexpected(ErrorOf(reply->root().text())));
    }
    answer(std::move(reply));
  });
}

void RedisStore::AddNow(Command& command, Moment now) const {
  if (options_.clock == ClockSource::kCaller) {
    command.Add(ToMs(now.utc));
  } else {
    command.Add("");
  }
}

int64_t RedisStore::RedisNow(Moment now) const {
  return ToMs(now.utc) + (options_.clock == ClockSource::kCaller ? 0 : redis_clock_.ahead_ms());
}

void RedisStore::LearnTime(int64_t redis_ms) {
  const Moment now = clock_.Now();
  redis_clock_.Add(redis_ms - ToMs(now.utc), now.steady);
}

Shelf* RedisStore::FindShelf(std::string_view topic) {
  const auto found = shelves_.find(topic);
  return found == shelves_.end() ? nullptr : &found->second;
}

Shelf& RedisStore::MakeShelf(const Topic& topic) {
  Shelf& shelf = shelves_[topic.name];
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

void RedisStore::MarkReady(Shelf& shelf, uint32_t slot) {
  shelf.ready.insert(slot);
  if (!shelf.reported) to_report_.insert(shelf.topic.name);
}

void RedisStore::MarkEmpty(Shelf& shelf, uint32_t slot) {
  shelf.ready.erase(slot);
  if (shelf.ready.empty()) shelf.reported = false;
}

void RedisStore::LearnChange(const Shelf& shelf, Slot& slot, const ReplyView& figures) {
  const SlotFigures before = slot.figures;
  Learn(slot, figures);
  if (slot.figures.ended() > before.ended() || slot.figures.bytes() < before.bytes()) rooms_.Freed(shelf.topic.name);
}

void RedisStore::LearnFigures(std::string_view slot, const ReplyView& figures) {
  if (const auto [shelf, known] = FindSlot(slot); known != nullptr) LearnChange(*shelf, *known, figures);
}

void RedisStore::LearnSlot(std::string_view slot, int64_t now_ms, int64_t head_ms, const ReplyView& figures) {
  LearnTime(now_ms);
  const auto [shelf, known] = FindSlot(slot);
  if (known == nullptr) return;
  LearnChange(*shelf, *known, figures);
  if (head_ms >= 0 && head_ms <= now_ms) {
    MarkReady(*shelf, known->number);
  } else {
    MarkEmpty(*shelf, known->number);
    groups_[known->group]->Due(head_ms);
  }
}

void RedisStore::ReadFigures(const std::string& topic, Done<void> done) {
  Shelf* shelf = FindShelf(topic);
  const auto gather = Join(std::move(done));
  for (const auto& [number, slot] : shelf->slots) {
    Command command = slot->keys.Call(
        scripts::Figures(), {Part::kMeta, Part::kStore, Part::kJob, Part::kPrepare, Part::kDead, Part::kEnded});
    AddNow(command, clock_.Now());
    ++gather->left;
    Send(std::move(command), [this, topic, number, gather](Result<Reply> reply) {
      if (!reply) return gather->Fail(std::move(reply).error());
      Shelf* found = FindShelf(topic);
      Slot* read = found == nullptr ? nullptr : found->Find(number);
      if (read != nullptr) {
        const bool first = !read->seen;
        Learn(*read, reply->root()[1]);
        if (first) read->opened = read->figures;
        read->seen = true;
      }
      gather->Leave();
    });
  }
  gather->Leave();
}

std::vector<TopicFigures> RedisStore::Topics() const {
  std::vector<TopicFigures> all;
  all.reserve(shelves_.size());
  for (const auto& [name, shelf] : shelves_) all.push_back(shelf.Figures());
  return all;
}

void RedisStore::PutTopic(const Topic& topic, Done<void> done) {
  Command command(scripts::PutTopic(), 2, keys_.topics);
  command.Add(keys_.topics_version).Add(topic.name).Add(EncodeTopic(topic)).Add(keys_.channel);
  Send(std::move(command), [this, topic, done = std::move(done)](Result<Reply> reply) mutable {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    const ReplyView root = reply->root();
    if (root[0].integer() == 0) {
      auto stored = DecodeTopic(topic.name, root[1].text());
      if (!stored) return done(std::unexpected(std::move(stored).error()));
      MakeShelf(*stored);
      return done(FailField(Code::kConflict, "topic", "another node has changed topic {} to version {}", topic.name,
                            stored->version));
    }
    MakeShelf(topic);
    ReadFigures(topic.name, std::move(done));
  });
}

void RedisStore::DropTopic(std::string_view topic, Done<void> done) {
  Shelf* shelf = FindShelf(topic);
  if (shelf == nullptr) return done({});
  const auto gather = Join(std::move(done));
  const auto send = [&](Command command) {
    ++gather->left;
    Send(std::move(command), [gather](Result<Reply> reply) {
      if (!reply) return gather->Fail(std::move(reply).error());
      gather->Leave();
    });
  };
  Command drop(scripts::DropTopic(), 2, keys_.topics);
  drop.Add(keys_.topics_version).Add(topic).Add(keys_.channel);
  send(std::move(drop));
  for (const auto& [number, slot] : shelf->slots) {
    Command command = slot->keys.Call(scripts::DropSlot(),
                                      {Part::kNext, Part::kChore, Part::kMeta, Part::kStore, Part::kJob, Part::kPrepare,
                                       Part::kDead, Part::kEnded, Part::kId, Part::kNote, Part::kCount, Part::kEvent});
    command.Add(slot->name);
    send(std::move(command));
  }
  ForgetTopic(topic);
  gather->Leave();
}

void RedisStore::ForgetTopic(std::string_view topic) {
  if (const auto found = shelves_.find(topic); found != shelves_.end()) shelves_.erase(found);
}

}  // namespace tocsin::redis
