#include "storage/journal/hot_tier.h"

#include "base/check.h"
#include "base/hash.h"

namespace tocsin::journal {

HotTier::HotTier(ChunkSource& source)
    : entries_(source),
      leases_(source),
      bodies_(source),
      by_uid_(source),
      by_own_(source),
      steady_(EntryNodes{&entries_}),
      utc_(EntryNodes{&entries_}),
      expiry_(LeaseNodes{&leases_}) {}

uint16_t HotTier::FindTopic(std::string_view name) const {
  const auto found = topic_numbers_.find(name);
  return found == topic_numbers_.end() ? kNoTopic : found->second;
}

uint16_t HotTier::AddTopic(const Topic& settings, std::shared_ptr<SharedUse> shared) {
  auto free = std::ranges::find(topics_, false, &TopicState::used);
  if (free == topics_.end()) {
    if (topics_.size() == kNoTopic) return kNoTopic;
    free = topics_.emplace(topics_.end());
  }
  *free = TopicState{};
  free->settings = settings;
  free->hash = Hash64(settings.name);
  free->shared = std::move(shared);
  free->used = true;
  const auto number = static_cast<uint16_t>(free - topics_.begin());
  topic_numbers_[settings.name] = number;
  return number;
}

void HotTier::RemoveTopic(uint16_t number) {
  TopicState& topic = topics_[number];
  TOCSIN_CHECK(topic.figures.scheduled + topic.figures.leased + topic.figures.dead == 0);
  topic_numbers_.erase(topic.settings.name);
  topic = TopicState{};
}

Index HotTier::Create(uint16_t topic, Uid uid, size_t body_size) {
  const BlobArena::Handle body = bodies_.Allocate(body_size);
  if (body == 0) return 0;
  const Index index = entries_.Allocate();
  if (index == 0) {
    bodies_.Free(body, body_size);
    return 0;
  }
  Entry& entry = entries_[index];
  entry.seq = uid;
  entry.topic = topic;
  entry.body = body;
  entry.body_size = static_cast<uint32_t>(body_size);
  return index;
}

uint64_t HotTier::OwnHash(uint64_t topic_hash, std::string_view key, std::string_view id) {
  return Hash64(id, key.empty() ? topic_hash : Hash64(key, topic_hash));
}

bool HotTier::Link(Index index) {
  Entry& entry = entries_[index];
  if (!by_uid_.Insert(UidHash(entry.topic, entry.seq), index)) return false;
  const std::string_view bytes = BodyOf(entry);
  if (static_cast<uint8_t>(bytes[0]) & kBodyOwnId) {
    Body body;
    TOCSIN_CHECK(DecodeBody(bytes, body));
    if (!by_own_.Insert(OwnHash(topics_[entry.topic].hash, body.key, body.own_id), index)) {
      by_uid_.Erase(UidHash(entry.topic, entry.seq), index);
      return false;
    }
  }
  entry.flags |= kAdmitted;
  topics_[entry.topic].figures.bytes += CountedBytes(bytes);
  ++topics_[entry.topic].entries;
  return true;
}

void HotTier::Discard(Index index) {
  bodies_.Free(entries_[index].body, entries_[index].body_size);
  entries_.Free(index);
}

void HotTier::Erase(Index index) {
  Detach(index);
  Entry& entry = entries_[index];
  Discharge(entry);
  --topics_[entry.topic].entries;
  by_uid_.Erase(UidHash(entry.topic, entry.seq), index);
  const std::string_view bytes = BodyOf(entry);
  if (static_cast<uint8_t>(bytes[0]) & kBodyOwnId) {
    Body body;
    TOCSIN_CHECK(DecodeBody(bytes, body));
    by_own_.Erase(OwnHash(topics_[entry.topic].hash, body.key, body.own_id), index);
  }
  if (entry.flags & kHasDetails) details_.erase(index);
  Discard(index);
}

uint64_t& HotTier::GaugeOf(const Entry& entry) {
  TopicFigures& figures = topics_[entry.topic].figures;
  if (entry.state == State::kScheduled) return figures.scheduled;
  return entry.state == State::kLeased ? figures.leased : figures.dead;
}

bool HotTier::TakeRoom(uint16_t number, uint64_t jobs, uint64_t bytes) {
  const Topic& settings = topics_[number].settings;
  SharedUse& shared = *topics_[number].shared;
  // Counted first and looked at then: two shards that meet at the limit cannot both pass it.
  const uint64_t jobs_after = shared.jobs.fetch_add(jobs, std::memory_order_relaxed) + jobs;
  const uint64_t bytes_after = shared.bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const bool fits = (settings.capacity_jobs == 0 || jobs == 0 || jobs_after <= settings.capacity_jobs) &&
                    (settings.capacity_bytes == 0 || bytes == 0 || bytes_after <= settings.capacity_bytes);
  if (!fits) GiveBack(number, jobs, bytes);
  return fits;
}

void HotTier::GiveBack(uint16_t topic, uint64_t jobs, uint64_t bytes) {
  topics_[topic].shared->jobs.fetch_sub(jobs, std::memory_order_relaxed);
  topics_[topic].shared->bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

void HotTier::AddUse(uint16_t topic, uint64_t jobs, uint64_t bytes) {
  topics_[topic].shared->jobs.fetch_add(jobs, std::memory_order_relaxed);
  topics_[topic].shared->bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void HotTier::Discharge(Entry& entry) {
  if ((entry.flags & kAdmitted) == 0) return;
  entry.flags &= static_cast<uint8_t>(~kAdmitted);
  TopicState& topic = topics_[entry.topic];
  const size_t bytes = CountedBytes(BodyOf(entry));
  topic.figures.bytes -= bytes;
  GiveBack(entry.topic, 1, bytes);
}

void HotTier::Detach(Index index) {
  Entry& entry = entries_[index];
  if ((entry.flags & kPlaced) == 0) return;
  entry.flags &= static_cast<uint8_t>(~kPlaced);
  TopicState& topic = topics_[entry.topic];
  switch (entry.state) {
    case State::kScheduled:
      if (entry.flags & kReady) {
        topic.ready.Unlink(EntryNodes{&entries_}, index);
        entry.flags &= static_cast<uint8_t>(~kReady);
        --topic.figures.ready;
      } else {
        wheel(entry).Remove(index);
      }
      --GaugeOf(entry);
      break;
    case State::kLeased:
      expiry_.Remove(entry.prev);  // not there when it has just expired
      leases_.Free(entry.prev);
      entry.prev = 0;
      --GaugeOf(entry);
      break;
    case State::kDead:
      topic.dead.Unlink(EntryNodes{&entries_}, index);
      --GaugeOf(entry);
      break;
    case State::kDone:
    case State::kCancelled:
      steady_.Remove(index);
      break;
  }
}

void HotTier::Schedule(Index index) {
  Entry& entry = entries_[index];
  entry.state = State::kScheduled;
  entry.flags |= kPlaced;
  ++GaugeOf(entry);
  if (entry.due() == kNever) return;
  if (!wheel(entry).Insert(index)) MakeReady(index);
}

void HotTier::MakeReady(Index index) {
  Entry& entry = entries_[index];
  List& ready = topics_[entry.topic].ready;
  const EntryNodes nodes{&entries_};
  entry.flags |= kReady;
  ++topics_[entry.topic].figures.ready;
  Announce(entry.topic);
  // Nearly always the last one; a released delivery belongs near the front. The search goes from both ends.
  const auto order = OrderOf(entry);
  Index after = ready.back();
  Index before = ready.front();
  while (after != 0 && OrderOf(entries_[after]) > order) {
    if (OrderOf(entries_[before]) > order) {
      ready.PushBefore(nodes, before, index);
      return;
    }
    before = entries_[before].next;
    after = entries_[after].prev;
  }
  ready.PushAfter(nodes, after, index);
}

void HotTier::Announce(uint16_t topic) {
  if (std::exchange(topics_[topic].announced, true)) return;
  announced_.push_back(topic);
}

void HotTier::MakeDead(Index index) {
  Entry& entry = entries_[index];
  entry.state = State::kDead;
  entry.flags |= kPlaced;
  topics_[entry.topic].dead.PushBack(EntryNodes{&entries_}, index);
  ++GaugeOf(entry);
}

void HotTier::Retain(Index index, State state, Time until) {
  Details& details = MakeDetails(index);
  if (!details.finished) {
    details.finished = true;
    details.finished_due = entries_[index].due();
    details.finished_timeline = entries_[index].timeline();
  }
  Entry& entry = entries_[index];
  Discharge(entry);
  entry.state = state;
  entry.flags |= kOnSteady | kPlaced;
  entry.due_ms = ToMs(until);
  // Where the wheel has passed that time already, the next millisecond does.
  while (!steady_.Insert(index)) ++entry.due_ms;
}

uint32_t HotTier::MakeLease(Index index, uint64_t fence, Time deadline) {
  const uint32_t lease = leases_.Allocate();
  if (lease == 0) return 0;
  Lease& made = leases_[lease];
  made.seq = fence;
  made.entry = index;
  made.due_ms = ToMs(deadline);
  while (!expiry_.Insert(lease)) ++made.due_ms;
  Entry& entry = entries_[index];
  entry.state = State::kLeased;
  entry.flags |= kPlaced;
  entry.prev = lease;
  ++GaugeOf(entry);
  return lease;
}

void HotTier::ExtendLease(uint32_t lease, Time deadline) {
  expiry_.Remove(lease);
  leases_[lease].due_ms = ToMs(deadline);
  while (!expiry_.Insert(lease)) ++leases_[lease].due_ms;
}

bool HotTier::ReplaceBody(Index index, std::string_view body) {
  Entry& entry = entries_[index];
  const BlobArena::Handle fresh = bodies_.Allocate(body.size());
  if (fresh == 0) return false;
  std::memcpy(bodies_.At(fresh), body.data(), body.size());
  const size_t before = CountedBytes(BodyOf(entry));
  const size_t after = CountedBytes(body);
  TopicState& topic = topics_[entry.topic];
  topic.figures.bytes += after - before;
  if (after < before) GiveBack(entry.topic, 0, before - after);
  bodies_.Free(entry.body, entry.body_size);
  entry.body = fresh;
  entry.body_size = static_cast<uint32_t>(body.size());
  return true;
}

uint32_t HotTier::LeaseOf(const Token& token, uint16_t topic) const {
  if (token.handle == 0 || token.handle >= leases_.end()) return 0;
  const auto index = static_cast<uint32_t>(token.handle);
  const Lease& lease = leases_[index];
  if (lease.IsFree() || lease.seq != token.fence) return 0;
  const Entry& entry = entries_[lease.entry];
  return entry.topic == topic && SlotOf(entry.seq) == token.slot ? index : 0;
}

const Details* HotTier::DetailsOf(Index index) const {
  if ((entries_[index].flags & kHasDetails) == 0) return nullptr;
  return &details_.at(index);
}

Details& HotTier::MakeDetails(Index index) {
  entries_[index].flags |= kHasDetails;
  return details_[index];
}

Index HotTier::FindUid(uint16_t topic, Uid uid) const {
  return by_uid_.Find(UidHash(topic, uid),
                      [&](Index index) { return entries_[index].seq == uid && entries_[index].topic == topic; });
}

Index HotTier::Find(uint16_t topic, JobRef job) const {
  const Index own = by_own_.Find(OwnHash(topics_[topic].hash, job.key, job.id), [&](Index index) {
    if (entries_[index].topic != topic) return false;
    Body body;
    return DecodeBody(BodyOf(entries_[index]), body) && body.own_id == job.id && body.key == job.key;
  });
  if (own != 0) return own;
  const auto uid = ParseUid(job.id);
  return uid ? FindUid(topic, *uid) : 0;
}

void HotTier::ResetWheels(Time oldest_steady, Time oldest_utc) {
  steady_.Reset(oldest_steady);
  utc_.Reset(oldest_utc);
  expiry_.Reset(oldest_steady);
}

size_t HotTier::used_bytes() const {
  constexpr size_t kTableBytes = 14;  // an id table's share of an entry
  return bodies_.used_bytes() + entries_.live() * (sizeof(Entry) + kTableBytes) + leases_.live() * sizeof(Lease) +
         details_.size() * (sizeof(Details) + 2 * sizeof(void*));
}

}  // namespace tocsin::journal
