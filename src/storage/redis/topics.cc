// RedisStore: topics. They live in one hash, and every group keeps a copy of those that have a slot in it. A topic that
// is missing from the hash was dropped only if there is a proof of it; otherwise Redis has lost it: a node that knows
// it puts it back, and the owners of groups put back what nobody knows.
#include "base/log.h"
#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

// As wipe.lua wants them.
constexpr auto kWholeSlot = {Part::kTopics, Part::kNext,    Part::kChore, Part::kMeta,  Part::kStore,
                             Part::kJob,    Part::kPrepare, Part::kDead,  Part::kEnded, Part::kId,
                             Part::kNote,   Part::kCount,   Part::kEvent, Part::kRoom,  Part::kClaim};
constexpr std::chrono::seconds kCompareEvery{5};
constexpr std::chrono::seconds kCompareAfter{1};
constexpr size_t kOpenedMax = 200;  // slots that one comparison opens again
constexpr size_t kNewsMax = 10'000;
constexpr size_t kProofsAtOnce = 1000;
constexpr uint32_t kFirstSlots = 4;  // whose groups are asked for a topic that the hash does not have

Command DropOf(const Slot& slot, uint32_t groups, uint64_t birth, uint32_t slots) {
  Command command = slot.keys.Call(Lua<"drop_slot">(), kWholeSlot);
  const bool last = slot.number + groups >= slots;  // of its group
  command.Add(slot.name).Add(static_cast<int64_t>(birth)).Add(last ? std::string_view(slot.topic) : "");
  return command;
}

}  // namespace

Command RedisStore::OpeningOf(const Slot& slot, const TopicSlots& slots) const {
  Command command = slot.keys.Call(Lua<"open_slot">(), kWholeSlot);
  AddNow(command, clock_.Now());
  command.Add(slot.name).Add(static_cast<int64_t>(slots.topic.birth)).Add(static_cast<int64_t>(slots.dropped));
  command.Add(slots.topic.name).Add(EncodeTopic(slots.topic));
  return command;
}

void RedisStore::OpenSlots(const std::string& topic, Done<void> done) {
  const TopicSlots& slots = *FindTopic(topic);
  const auto gather = Join(std::move(done));
  for (const auto& [number, slot] : slots.by_number) {
    ReadSlot(topic, number, OpeningOf(*slot, slots), OneMore(gather));
  }
  gather->Leave();
}

void RedisStore::CheckLife(std::string_view slot_name, Task then) {
  const auto [slots, slot] = FindSlot(slot_name);
  if (slot == nullptr) {
    if (then) then();
    return;
  }
  const auto [at, first] = checks_.try_emplace(std::string(slot_name));
  if (then) at->second.push_back(std::move(then));
  if (!first) return;
  const StoredTopic& topic = slots->topic;
  SendPut(PutMode::kRestore, topic.name, EncodeTopic(topic), topic.birth,
          [this, name = std::string(slot_name)](Result<Put> put) {
            const auto [known, checked] = FindSlot(name);
            if (checked == nullptr || !put) return EndCheck(name);
            const bool lives = put->outcome != PutOutcome::kDropped && BirthIn(put->stored) == known->topic.birth;
            if (!lives) {
              TopicsAreStale();
              return EndCheck(name);
            }
            // The node that made the topic did not get here, or a failover has lost the opening of the slot and
            // everything after it.
            known->dropped = put->dropped;
            ReadSlot(known->topic.name, checked->number, OpeningOf(*checked, *known),
                     [this, name](const Result<void>&) { EndCheck(name); });
          });
}

void RedisStore::EndCheck(const std::string& slot) {
  auto ended = checks_.extract(slot);
  if (ended.empty()) return;
  for (Task& task : ended.mapped()) task();
}

void RedisStore::TopicsAreStale() {
  topics_version_ = kUnknownVersion;
  topics_stale_ = true;
  if (options_.shard == 0 && changed_) changed_();
}

void RedisStore::SendPut(PutMode mode, std::string_view name, std::string_view settings, uint64_t birth,
                         Done<Put> done) {
  Command command(Lua<"put_topic">(), 3, keys_.topics);
  command.Add(keys_.topics_version).Add(keys_.DropOf(name)).Add(keys_.channel).Add(name);
  command.Add(settings).Add(EncodeBirth(birth)).Add(static_cast<int64_t>(mode));
  command.Add(static_cast<int64_t>(options_.topics));
  Send(std::move(command), [done = std::move(done)](Result<Reply> reply) mutable {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    const ReplyView root = reply->root();
    done(Put{static_cast<PutOutcome>(root[0].integer()), std::string(root[1].text()),
             static_cast<uint64_t>(root[2].integer())});
  });
}

void RedisStore::PutTopic(const Topic& topic, Done<void> done) { PutAs(PutMode::kLook, topic, std::move(done)); }

void RedisStore::PutAs(PutMode mode, const Topic& topic, Done<void> done) {
  const TopicSlots* known = FindTopic(topic.name);
  const uint64_t birth = known == nullptr ? 0 : known->topic.birth;
  SendPut(mode, topic.name, EncodeTopic(topic), birth, [this, topic, done = std::move(done)](Result<Put> put) mutable {
    if (!put) return done(std::unexpected(std::move(put).error()));
    if (put->outcome == PutOutcome::kUnknown) return LookThenPut(topic, std::move(done));
    if (put->outcome == PutOutcome::kFull) return done(TooManyTopics(options_.topics));
    const auto stored = DecodeTopic(topic.name, put->stored);
    if (!stored) return done(std::unexpected(stored.error()));
    KeepTopic(*stored).dropped = put->dropped;
    if (put->outcome != PutOutcome::kRefused) return OpenSlots(topic.name, std::move(done));
    done(FailField(Code::kConflict, "topic", "another node has changed topic {} to version {}", topic.name,
                   stored->version));
  });
}

void RedisStore::LookThenPut(const Topic& topic, Done<void> done) {
  const auto latest = std::make_shared<std::string>();  // of what the groups keep
  const auto gather = Join([this, topic, latest, done = std::move(done)](Result<void> all) mutable {
    if (!all) return done(std::move(all));
    if (latest->empty()) return PutAs(PutMode::kCreate, topic, std::move(done));
    SendPut(PutMode::kRestore, topic.name, SettingsIn(*latest), BirthIn(*latest),
            [this, topic, done = std::move(done)](Result<Put> put) mutable {
              if (!put) return done(std::unexpected(std::move(put).error()));
              if (put->outcome != PutOutcome::kDropped) {
                const auto stored = DecodeTopic(topic.name, put->stored);
                if (!stored) return done(std::unexpected(stored.error()));
                KeepTopic(*stored);
              }
              PutAs(PutMode::kCreate, topic, std::move(done));
            });
  });
  for (uint32_t slot = 0; slot < kFirstSlots; ++slot) {
    Command look = tags_.KeysOf(topic.name, slot).Call("HGET", Part::kTopics);
    look.Add(topic.name);
    Send(std::move(look), [latest, slot, answered = OneMore(gather)](Result<Reply> reply) mutable {
      const std::string_view kept = reply ? reply->root().text() : std::string_view();
      const bool known = kept.size() >= kTopicNumberBytes;
      if (known && (latest->empty() || BirthIn(kept) > BirthIn(*latest))) *latest = kept;
      // One master that is away must not keep topics of the others from being made.
      Result<void> asked;
      if (!reply && slot == 0) asked = std::unexpected(std::move(reply).error());
      answered(std::move(asked));
    });
  }
  gather->Leave();
}

void RedisStore::PutBack(const StoredTopic& topic) {
  if (!putting_back_.insert(topic.name).second) return;
  SendPut(PutMode::kRestore, topic.name, EncodeTopic(topic), topic.birth,
          [this, name = topic.name, birth = topic.birth](Result<Put> put) {
            putting_back_.erase(name);
            if (!put) {
              topics_version_ = kUnknownVersion;  // the next scan of all tries again
              return;
            }
            if (put->outcome == PutOutcome::kBack) LogWarn("Redis had lost topic {}: it was put back", name);
            lost_.erase(name);
            const TopicSlots* known = FindTopic(name);
            if (known == nullptr || known->topic.birth != birth) return;
            if (put->outcome == PutOutcome::kRefused) return TopicsAreStale();
            if (put->outcome == PutOutcome::kDropped) TakeDropped(name);
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
  Command command(Lua<"drop_topic">(), 3, keys_.topics);
  command.Add(keys_.topics_version).Add(keys_.DropOf(topic)).Add(keys_.channel).Add(topic);
  command.Add(EncodeBirth(dropping->second.birth));
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
    if (tags_.GroupOf(topic, number) % options_.shards != options_.shard) continue;
    Send(DropOf(Slot(tags_, topic, number), tags_.size(), dropping.birth, dropping.slots), OneMore(gather));
  }
  gather->Leave();
}

void RedisStore::ForgetTopic(std::string_view topic) {
  if (const auto lost = lost_.find(topic); lost != lost_.end()) lost_.erase(lost);
  const auto found = topics_.find(topic);
  if (found == topics_.end()) return;
  CountInGroups(found->second, false);
  allowances_.Forget(topic);
  topics_.erase(found);
}

void RedisStore::HearOfTopic(std::string_view news) {
  if (options_.shard != 0) return;
  TopicNews& told = topic_news_.emplace_back();
  told.before = ParseMs(NextWord(news));
  told.version = ParseMs(NextWord(news));
  told.name = news;
  if (topic_news_.size() > kNewsMax) topic_news_.pop_front();  // then all topics are read
  topics_stale_ = true;
  if (changed_) changed_();
}

std::pair<std::set<std::string>, int64_t> RedisStore::TopicsTold() {
  while (!topic_news_.empty() && topic_news_.front().version <= topics_version_) topic_news_.pop_front();
  std::pair<std::set<std::string>, int64_t> told{{}, topics_version_};
  for (const TopicNews& news : topic_news_) {
    if (news.before != told.second) return {};  // a message is missing
    told.first.insert(news.name);
    told.second = news.version;
  }
  return told;
}

void RedisStore::ReadTold(const std::set<std::string>& names, int64_t version,
                          const std::shared_ptr<Advancing>& advancing) {
  Command command("HMGET", keys_.topics);
  for (const std::string& name : names) command.Add(name);
  // The answer is not older, and the next message goes on from there.
  const int64_t since = std::exchange(topics_version_, version);
  Send(std::move(command), [this, names, since, advancing](Result<Reply> reply) {
    checking_topics_ = false;
    if (!reply) {
      topics_version_ = kUnknownVersion;
      topics_stale_ = true;
      return LeaveFailed(topics_trouble_, std::move(reply).error(), advancing);
    }
    topics_trouble_.reset();
    size_t at = 0;
    std::vector<std::string> missing;
    for (const std::string& name : names) {
      std::erase_if(topic_changes_.changed, [&](const Topic& topic) { return topic.name == name; });
      const ReplyView entry = reply->root()[at++];
      if (entry.kind() == Kind::kText) {
        TakeTopic(name, entry.text(), since);
        continue;
      }
      unreadable_.erase(name);
      if (FindTopic(name) != nullptr) missing.push_back(name);
    }
    TakeMissing(std::move(missing));
    LeaveAdvance(advancing);
  });
}

void RedisStore::TakeTopic(std::string_view name, std::string_view entry, int64_t since) {
  auto topic = DecodeTopic(name, entry);
  if (!topic && unreadable_.emplace(name).second) {
    LogError("this node leaves a topic out that a later version has written: {}", topic.error().message);
  }
  if (topic) unreadable_.erase(topic->name);
  const TopicSlots* slots = FindTopic(name);
  const auto lost = lost_.find(name);
  const bool set_back = topic && slots != nullptr && slots->topic.birth > topic->birth;
  if (lost != lost_.end() && !set_back) lost_.erase(lost);
  if (!topic) return;
  const bool same_life = slots != nullptr && slots->topic.birth == topic->birth;
  // The hash is older than what is known here: it comes from a copy that was restored.
  if (set_back) return TakeLost(slots->topic);
  if (same_life && slots->topic == *topic) return;
  // Created again, or set back by a failover that lost a change: what is known here is not its predecessor.
  if (slots != nullptr && (!same_life || slots->topic.version >= topic->version)) {
    topic_changes_.dropped.emplace_back(name);
    ForgetTopic(name);
  }
  const bool born = since != kUnknownVersion && static_cast<int64_t>(topic->birth) > since;
  topic_changes_.changed.push_back(HeardTopic{Topic(*topic), topic->birth, born});
}

void RedisStore::TakeTopics(const ReplyView& reply, int64_t since) {
  topic_changes_.changed.clear();  // those that were not taken yet are found again below, as they are now
  std::set<std::string_view> stored;
  for (size_t i = 0; i + 1 < reply.size(); i += 2) {
    stored.insert(reply[i].text());
    TakeTopic(reply[i].text(), reply[i + 1].text(), since);
  }
  std::erase_if(unreadable_, [&stored](const std::string& name) { return !stored.contains(name); });
  std::vector<std::string> missing;
  for (const auto& [name, slots] : topics_) {
    if (!stored.contains(name)) missing.push_back(name);
  }
  TakeMissing(std::move(missing));
}

void RedisStore::TakeMissing(std::vector<std::string> names) {
  if (names.empty()) return;
  std::vector<std::string> rest;
  if (names.size() > kProofsAtOnce) {
    rest.assign(std::make_move_iterator(names.begin() + kProofsAtOnce), std::make_move_iterator(names.end()));
    names.resize(kProofsAtOnce);
  }
  Command command("MGET", keys_.DropOf(names.front()));
  for (const std::string& name : std::span(names).subspan(1)) command.Add(keys_.DropOf(name));
  Send(std::move(command), [this, names = std::move(names), rest = std::move(rest)](Result<Reply> reply) mutable {
    if (!reply) {
      topics_version_ = kUnknownVersion;  // the next scan of all tries again
      return;
    }
    for (size_t i = 0; i < names.size(); ++i) {
      const TopicSlots* slots = FindTopic(names[i]);
      if (slots == nullptr) continue;
      const int64_t dropped = ParseMs(reply->root()[i].text());
      if (dropped >= 0 && static_cast<uint64_t>(dropped) >= slots->topic.birth) {
        TakeDropped(names[i]);
      } else {
        TakeLost(slots->topic);
      }
    }
    TakeMissing(std::move(rest));
  });
}

void RedisStore::TakeDropped(std::string_view name) {
  topic_changes_.dropped.emplace_back(name);
  ForgetTopic(name);
  if (changed_) changed_();
}

bool RedisStore::PutsBackFirst(std::string_view topic) const {
  const uint32_t group = tags_.GroupOf(topic, 0);
  return groups_[group - group % options_.shards]->Mine();
}

void RedisStore::TakeLost(const StoredTopic& topic) {
  const Time now = clock_.Now().steady;
  const Time at = lost_.try_emplace(topic.name, now + put_back_after_).first->second;
  if (now >= at || PutsBackFirst(topic.name)) PutBack(topic);
}

void RedisStore::CompareTopics(Group& group, size_t kept) {
  const Time now = clock_.Now().steady;
  const std::pair counts(kept, group.topics);
  if (group.compared && (kept == group.topics || counts == *group.compared)) {
    group.differs_at = kNever;
    return;
  }
  // Another node may be making or dropping a topic, and about to reach its slots here.
  if (group.differs_at == kNever) group.differs_at = now;
  if (group.compared && now < group.differs_at + kCompareAfter) return;
  if (now < group.compare_at) return;
  group.compared = counts;
  group.compare_at = now + kCompareEvery;
  Send(group.keys.Call("HGETALL", Part::kTopics), [this, &group](Result<Reply> reply) {
    if (!reply) return group.compared.reset();
    const ReplyView root = reply->root();
    std::set<std::string_view> found;
    for (size_t i = 0; i + 1 < root.size(); i += 2) {
      const std::string_view name = root[i].text();
      const std::string_view entry = root[i + 1].text();
      if (entry.size() < kTopicNumberBytes) continue;
      const TopicSlots* slots = FindTopic(name);
      if (slots != nullptr && slots->topic.birth == BirthIn(entry)) {
        // If the copy is older, the node that changed the topic did not get here.
        if (VersionIn(entry) >= slots->topic.version) found.insert(name);
      } else {
        TakeFound(group, std::string(name), std::string(entry));
      }
    }
    if (found.size() < group.topics) OpenUnkept(group, found);
  });
}

void RedisStore::TakeFound(Group& group, const std::string& name, const std::string& entry) {
  const uint64_t birth = BirthIn(entry);
  const auto take = [this, &group, name, birth, slots = SlotsIn(entry)](Result<Put> put) {
    if (!put) return group.compared.reset();
    if (put->outcome == PutOutcome::kBack) LogWarn("Redis had lost topic {}: its slots knew it", name);
    if (put->outcome == PutOutcome::kStored || put->outcome == PutOutcome::kBack) return;
    const bool over = put->dropped >= birth;
    bool opened = false;
    for (uint32_t number = 0; number < slots; ++number) {
      if (tags_.GroupOf(name, number) != group.number) continue;
      const Slot slot(tags_, name, number);
      if (!over) {
        // A later life that did not open it yet, which takes its jobs over.
        opened = opened || FindSlot(slot.name).second != nullptr;
        CheckLife(slot.name);
        continue;
      }
      Send(DropOf(slot, tags_.size(), birth, slots), [&group](const Result<Reply>& reply) {
        if (!reply) group.compared.reset();
      });
    }
    if (!over && !opened && BirthIn(put->stored) > birth) {
      LogError("group {} has slots of topic {} that its present life, which has fewer, does not serve", group.number,
               name);
    }
  };
  SendPut(PutMode::kRestore, name, SettingsIn(entry), birth, take);
}

void RedisStore::OpenUnkept(Group& group, const std::set<std::string_view>& kept) {
  std::vector<std::string> unkept;
  for (const auto& [name, slots] : topics_) {
    if (kept.contains(name)) continue;
    for (const auto& [number, slot] : slots.by_number) {
      if (slot->group == group.number) unkept.push_back(slot->name);
    }
    if (unkept.size() < kOpenedMax) continue;
    group.compared.reset();  // the next comparison goes on
    break;
  }
  for (const std::string& slot : unkept) CheckLife(slot);
}

}  // namespace tocsin::redis
