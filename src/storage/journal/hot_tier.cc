#include "storage/journal/hot_tier.h"

#include "base/result.h"

namespace tocsin::journal {

HotTier::HotTier(ChunkSource& source, size_t topics)
    : jobs_(source),
      leases_(source),
      bodies_(source),
      by_uid_(source),
      by_own_(source),
      steady_({&jobs_}),
      utc_({&jobs_}),
      expiry_({&leases_}) {
  topic_numbers_.reserve(topics);
}

TopicNumber HotTier::FindTopic(std::string_view name) const {
  const auto found = topic_numbers_.find(name);
  return found == topic_numbers_.end() ? kNoTopic : found->second;
}

TopicNumber HotTier::AddTopic(const Topic& settings, std::shared_ptr<SharedUse> shared) {
  if (free_numbers_.empty()) {
    free_numbers_.push_back(static_cast<TopicNumber>(topics_.size()));
    topics_.push_back(std::make_unique<TopicState>());
  }
  const TopicNumber number = free_numbers_.back();
  free_numbers_.pop_back();
  TopicState& topic = *topics_[number];
  topic.settings = settings;
  topic.hash = TableHash(settings.name);
  topic.shared = std::move(shared);
  topic.used = true;
  topic_numbers_[settings.name] = number;
  return number;
}

void HotTier::DropTopic(TopicNumber number) {
  TopicState& topic = *topics_[number];
  topic_numbers_.erase(topic.settings.name);
  topic.used = false;
  if (topic.jobs == 0) return FreeNumber(number);
  topic.settings = {};
  dropped_.insert(number);
  dropped_jobs_ += topic.jobs;
  dropped_marks_ |= MarkOf(number);
  // What the jobs hold no longer counts against the capacity of the name, which may be used again.
  const TopicFigures& figures = topic.figures;
  const uint64_t admitted = figures.scheduled + figures.leased + figures.dead;
  GiveBack(number, admitted, figures.bytes);
  topic.shared = std::make_shared<SharedUse>();
  AddUse(number, admitted, figures.bytes);
}

void HotTier::FreeNumber(TopicNumber number) {
  dropped_.erase(number);
  minutes_bytes_ -= topics_[number]->minutes.held_bytes();
  *topics_[number] = TopicState{};
  free_numbers_.push_back(number);
}

Index HotTier::Create(TopicNumber topic, Uid uid, size_t body_size) {
  const BlobArena::Handle body = bodies_.Allocate(body_size);
  if (body == 0) return 0;
  const Index index = jobs_.Allocate();
  if (index == 0) {
    bodies_.Free(body, body_size);
    return 0;
  }
  const uint32_t block = index >> kBlockShift;
  if (block >= marks_.size()) marks_.resize(block + 1);
  marks_[block] |= MarkOf(topic);
  HotJob& hot = jobs_[index];
  hot.uid = uid;
  hot.topic = topic;
  hot.body = body;
  hot.body_size = static_cast<uint32_t>(body_size);
  return index;
}

uint64_t HotTier::OwnHash(uint64_t topic_hash, std::string_view key, std::string_view id) {
  return TableHash(id, key.empty() ? topic_hash : TableHash(key, topic_hash));
}

std::optional<uint64_t> HotTier::OwnHash(const HotJob& hot) const {
  const BodyId id = DecodeId(BodyOf(hot));
  if (id.own_id.empty()) return std::nullopt;
  return OwnHash(topics_[hot.topic]->hash, id.key, id.own_id);
}

bool HotTier::Link(Index index) {
  HotJob& hot = jobs_[index];
  if (!by_uid_.Insert(UidHash(hot.topic, hot.uid), index)) return false;
  if (const auto own = OwnHash(hot); own && !by_own_.Insert(*own, index)) {
    by_uid_.Erase(UidHash(hot.topic, hot.uid), index);
    return false;
  }
  hot.flags |= kAdmitted;
  hot.tells_created = CreatedIn(BodyOf(hot)) != Time{};
  topics_[hot.topic]->figures.bytes += CountedBytes(BodyOf(hot));
  ++topics_[hot.topic]->jobs;
  NoteBlock(*topics_[hot.topic], index >> kBlockShift);
  return true;
}

void HotTier::NoteBlock(TopicState& topic, uint32_t block) {
  if (topic.in_many_blocks || (!topic.blocks.empty() && topic.blocks.back() == block)) return;
  const auto at = std::ranges::lower_bound(topic.blocks, block);
  if (at != topic.blocks.end() && *at == block) return;
  if (topic.blocks.size() < TopicState::kBlocksMax) {
    topic.blocks.insert(at, block);
    return;
  }
  topic.in_many_blocks = true;
  topic.blocks = {};
}

void HotTier::Discard(Index index) {
  bodies_.Free(jobs_[index].body, jobs_[index].body_size);
  jobs_.Free(index);
}

void HotTier::Erase(Index index) {
  Detach(index);
  HotJob& hot = jobs_[index];
  Discharge(hot);
  const TopicNumber number = hot.topic;
  by_uid_.Erase(UidHash(hot.topic, hot.uid), index);
  if (const auto own = OwnHash(hot)) by_own_.Erase(*own, index);
  if (hot.flags & kHasDetails) {
    auto& part = details_[index >> kDetailsShift];
    const auto details = part.find(index);
    details_bytes_ -= details->second.bytes;
    LeaveEvents(details->second.events);
    part.erase(details);
  }
  Discard(index);
  TopicState& topic = *topics_[number];
  if (--topic.jobs == 0) {
    topic.in_many_blocks = false;
    topic.blocks = {};
  }
  if (topic.used) return;
  if (--dropped_jobs_ == 0) dropped_marks_ = 0;
  if (topic.jobs == 0) FreeNumber(number);
}

void HotTier::LeaveEvents(EventSet& events) {
  if (!events.large()) return;
  left_bytes_ += events.held_bytes();
  left_events_.push_back(std::move(events));
}

void HotTier::FreeEvents() {
  constexpr size_t kBytesMax = size_t{1} << 20;  // in one call
  for (size_t freed = 0; !left_events_.empty() && freed < kBytesMax;) {
    EventSet& events = left_events_.front();
    const size_t before = events.held_bytes();
    freed += events.FreeSome(kBytesMax - freed);
    left_bytes_ -= before - events.held_bytes();
    if (!events.freed()) return;
    left_bytes_ -= events.held_bytes();
    left_events_.pop_front();
  }
}

uint64_t& HotTier::GaugeOf(const HotJob& hot) {
  TopicFigures& figures = topics_[hot.topic]->figures;
  if (hot.state == State::kScheduled) return figures.scheduled;
  return hot.state == State::kLeased ? figures.leased : figures.dead;
}

bool HotTier::TakeRoom(TopicNumber number, uint64_t jobs, uint64_t bytes) {
  const Topic& settings = topics_[number]->settings;
  SharedUse& shared = *topics_[number]->shared;
  // Add first and compare afterwards, so that two shards cannot both pass the limit.
  const uint64_t jobs_after = shared.jobs.fetch_add(jobs, std::memory_order_relaxed) + jobs;
  const uint64_t bytes_after = shared.bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const bool fits = (settings.capacity_jobs == 0 || jobs == 0 || jobs_after <= settings.capacity_jobs) &&
                    (settings.capacity_bytes == 0 || bytes == 0 || bytes_after <= settings.capacity_bytes);
  if (!fits) GiveBack(number, jobs, bytes);
  return fits;
}

void HotTier::GiveBack(TopicNumber topic, uint64_t jobs, uint64_t bytes) {
  topics_[topic]->shared->jobs.fetch_sub(jobs, std::memory_order_relaxed);
  topics_[topic]->shared->bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

void HotTier::AddUse(TopicNumber topic, uint64_t jobs, uint64_t bytes) {
  topics_[topic]->shared->jobs.fetch_add(jobs, std::memory_order_relaxed);
  topics_[topic]->shared->bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void HotTier::Discharge(HotJob& hot) {
  if ((hot.flags & kAdmitted) == 0) return;
  hot.flags &= static_cast<uint8_t>(~kAdmitted);
  const size_t bytes = CountedBytes(BodyOf(hot));
  topics_[hot.topic]->figures.bytes -= bytes;
  GiveBack(hot.topic, 1, bytes);
}

void HotTier::Detach(Index index) {
  HotJob& hot = jobs_[index];
  if ((hot.flags & kPlaced) == 0) return;
  hot.flags &= static_cast<uint8_t>(~kPlaced);
  TopicState& topic = *topics_[hot.topic];
  switch (hot.state) {
    case State::kScheduled:
      if (hot.flags & kReady) {
        out_of_turn_ -= topic.ready.Remove(Items<HotJob>{&jobs_}, index) ? 1 : 0;
        hot.flags &= static_cast<uint8_t>(~kReady);
        --topic.figures.ready;
        --ready_;
      } else if (hot.due() != kNever) {
        CountOut(index);
        const bool on_steady = (hot.flags & kOnSteady) != 0;
        on_steady ? steady_.Remove(index) : utc_.Remove(index);
      }
      --GaugeOf(hot);
      break;
    case State::kLeased:
      expiry_.Remove(hot.prev);  // nothing if it has just expired
      holders_.Release(leases_[hot.prev].holder);
      leases_.Free(hot.prev);
      hot.prev = 0;
      --GaugeOf(hot);
      break;
    case State::kDead:
      topic.dead.Unlink(Items<HotJob>{&jobs_}, index);
      --GaugeOf(hot);
      break;
    case State::kDone:
    case State::kCancelled:
      steady_.Remove(index);
      break;
  }
}

void HotTier::Schedule(Index index) {
  HotJob& hot = jobs_[index];
  hot.state = State::kScheduled;
  hot.flags |= kPlaced;
  ++GaugeOf(hot);
  if (hot.due() == kNever) return;
  const bool waits = hot.flags & kOnSteady ? steady_.Insert(index) : utc_.Insert(index);
  waits ? CountIn(index) : MakeReady(index);
}

void HotTier::HoldBack(Moment now) {
  constexpr size_t kLookMax = 16 * kHeldBackMax;  // most jobs are not ready, and only looked at
  const auto stop = static_cast<Index>(std::min<uint64_t>(jobs_.end(), uint64_t{hold_next_} + kLookMax));
  size_t held_back = 0;
  while (hold_next_ < stop && held_back < kHeldBackMax) {
    const Index index = hold_next_++;
    const HotJob& hot = jobs_[index];
    if ((hot.flags & kReady) == 0 || (hot.flags & kOnSteady) != 0) continue;
    if (!IsEarly(hot, now)) {
      ready_utc_ = std::max(ready_utc_, hot.due());
      continue;
    }
    Detach(index);
    Schedule(index);
    ++held_back;
  }
  if (hold_next_ >= jobs_.end()) hold_next_ = 0;
}

void HotTier::MakeReady(Index index) {
  HotJob& hot = jobs_[index];
  hot.flags |= kReady;
  TopicState& topic = *topics_[hot.topic];
  if ((hot.flags & kOnSteady) == 0) ready_utc_ = std::max(ready_utc_, hot.due());
  ++topic.figures.ready;
  ++ready_;
  Announce(hot.topic);
  const auto order = [this](Index each) { return OrderOf(each); };
  out_of_turn_ += topic.ready.Insert(Items<HotJob>{&jobs_}, order, index) ? 1 : 0;
}

void HotTier::Announce(TopicNumber topic) {
  if (std::exchange(topics_[topic]->announced, true)) return;
  announced_.push_back(topic);
}

void HotTier::MakeDead(Index index) {
  HotJob& hot = jobs_[index];
  hot.state = State::kDead;
  hot.flags |= kPlaced;
  topics_[hot.topic]->dead.PushBack(Items<HotJob>{&jobs_}, index);
  ++GaugeOf(hot);
}

void HotTier::Retain(Index index, State state, Time ended, Time until) {
  HotJob& hot = jobs_[index];
  ChangeDetails(index, [&](Details& details) {
    if (!details.finished) details.Finish(hot.due(), hot.timeline(), ended);
  });
  Discharge(hot);
  hot.state = state;
  hot.flags |= kOnSteady | kPlaced;
  hot.due_ms = ToMs(until);
  // If the wheel has passed that time already, use the next millisecond that it takes.
  while (!steady_.Insert(index)) ++hot.due_ms;
}

uint32_t HotTier::MakeLease(Index index, uint64_t fence, uint16_t holder, Time now, Time deadline) {
  const uint32_t lease = leases_.Allocate();
  if (lease == 0) return 0;
  Lease& made = leases_[lease];
  made.fence = fence;
  made.job = index;
  made.holder = holder;
  made.begun_ms = static_cast<uint64_t>(ToMs(now));
  made.due_ms = ToMs(deadline);
  while (!expiry_.Insert(lease)) ++made.due_ms;
  HotJob& hot = jobs_[index];
  hot.state = State::kLeased;
  hot.flags |= kPlaced;
  hot.prev = lease;
  ++GaugeOf(hot);
  return lease;
}

void HotTier::ExtendLease(uint32_t lease, Time deadline) {
  constexpr uint64_t kMost = UINT16_MAX;
  expiry_.Remove(lease);
  if (leases_[lease].extensions < kMost) ++leases_[lease].extensions;
  leases_[lease].due_ms = ToMs(deadline);
  while (!expiry_.Insert(lease)) ++leases_[lease].due_ms;
}

bool HotTier::ReplaceBody(Index index, std::string_view body) {
  HotJob& hot = jobs_[index];
  const BlobArena::Handle fresh = bodies_.Allocate(body.size());
  if (fresh == 0) return false;
  std::memcpy(bodies_.At(fresh), body.data(), body.size());
  const size_t before = CountedBytes(BodyOf(hot));
  const size_t after = CountedBytes(body);
  topics_[hot.topic]->figures.bytes += after - before;
  if (after < before) GiveBack(hot.topic, 0, before - after);
  bodies_.Free(hot.body, hot.body_size);
  hot.body = fresh;
  hot.body_size = static_cast<uint32_t>(body.size());
  return true;
}

uint32_t HotTier::LeaseOf(const Token& token, TopicNumber topic) const {
  if (token.handle == 0 || token.handle >= leases_.end()) return 0;
  const auto index = static_cast<uint32_t>(token.handle);
  const Lease& lease = leases_[index];
  if (lease.IsFree() || lease.fence != token.fence) return 0;
  const HotJob& hot = jobs_[lease.job];
  return hot.topic == topic && SlotOf(hot.uid) == token.slot ? index : 0;
}

const Details* HotTier::DetailsOf(Index index) const {
  if ((jobs_[index].flags & kHasDetails) == 0) return nullptr;
  return &details_[index >> kDetailsShift].at(index);
}

Index HotTier::FindUid(TopicNumber topic, Uid uid) const {
  return by_uid_.Find(UidHash(topic, uid),
                      [&](Index index) { return jobs_[index].uid == uid && jobs_[index].topic == topic; });
}

Index HotTier::Find(TopicNumber topic, JobRef job) const {
  if (job.uid != 0) return FindUid(topic, job.uid);
  const Index own = by_own_.Find(OwnHash(topics_[topic]->hash, job.key, job.id), [&](Index index) {
    if (jobs_[index].topic != topic) return false;
    const BodyId id = DecodeId(BodyOf(jobs_[index]));
    return id.own_id == job.id && id.key == job.key;
  });
  if (own != 0) return own;
  const auto uid = ParseUid(job.id);
  return uid ? FindUid(topic, *uid) : 0;
}

uint32_t HotTier::MinuteOf(Index index) const {
  const HotJob& hot = jobs_[index];
  const Millis apart = index < recount_next_ ? recounted_apart_ : counted_apart_;
  const int64_t shown_ms = hot.flags & kOnSteady ? hot.due_ms + apart.count() : hot.due_ms;
  // Nobody can ask for the last minute (kLoadLast).
  return static_cast<uint32_t>(std::clamp<int64_t>(shown_ms / kLoadMinute.count(), 0, UINT32_MAX));
}

void HotTier::ChangeCount(Index index, void (MinuteCounts::*change)(uint32_t minute)) {
  const uint32_t minute = MinuteOf(index);
  for (MinuteCounts* const counts : {&minutes_, &topics_[jobs_[index].topic]->minutes}) {
    minutes_bytes_ -= counts->held_bytes();
    (counts->*change)(minute);
    minutes_bytes_ += counts->held_bytes();
  }
}

void HotTier::Recount(size_t budget) {
  // The two timelines may turn to the next millisecond one after the other, so readings of the clock differ by 1 ms in
  // how far they are apart.
  constexpr Millis kNoise{1};
  if (recount_next_ == 0 && std::chrono::abs(apart_ - counted_apart_) > kNoise) {
    recounted_apart_ = apart_;
    recount_next_ = 1;
  }
  if (recount_next_ == 0) return;
  const auto stop = static_cast<Index>(std::min<uint64_t>(jobs_.end(), uint64_t{recount_next_} + budget));
  while (recount_next_ < stop) {
    const HotJob& hot = jobs_[recount_next_];
    const bool counted = !hot.IsFree() && (hot.flags & (kPlaced | kOnSteady | kReady)) == (kPlaced | kOnSteady) &&
                         hot.state == State::kScheduled && hot.due() != kNever;
    if (counted) CountOut(recount_next_);
    ++recount_next_;
    if (counted) CountIn(recount_next_ - 1);
  }
  if (recount_next_ < jobs_.end()) return;
  counted_apart_ = recounted_apart_;
  recount_next_ = 0;
}

LoadCounts HotTier::Load(TopicNumber topic, const LoadSpan& span) const {
  constexpr size_t kLooksMax = 4'000;  // each takes some ten nanoseconds
  const auto minute_of = [](Time time) { return static_cast<uint32_t>(ToMs(time) / kLoadMinute.count()); };
  const bool all = topic == kNoTopic;
  const MinuteCounts& minutes = all ? minutes_ : topics_[topic]->minutes;
  const size_t looks_each = std::max<size_t>(minutes.LooksFor(static_cast<uint32_t>(span.step / kLoadMinute)), 1) *
                            (all ? 1 + dropped_.size() : 1);
  LoadCounts counts{.due = all ? ready_ : topics_[topic]->figures.ready};
  counts.jobs.resize(std::min(span.steps, std::max<size_t>(kLooksMax / looks_each, 1)));
  for (size_t i = 0; i < counts.jobs.size(); ++i) {
    const uint32_t from = minute_of(span.StartOf(i));
    const uint32_t to = minute_of(span.StartOf(i + 1));
    counts.jobs[i] = minutes.CountIn(from, to);
    if (!all) continue;
    for (const TopicNumber dropped : dropped_) counts.jobs[i] -= topics_[dropped]->minutes.CountIn(from, to);
  }
  if (!all) return counts;
  for (const TopicNumber dropped : dropped_) counts.due -= topics_[dropped]->figures.ready;
  return counts;
}

void HotTier::ResetWheels(Time oldest_steady, Time oldest_utc, Millis apart) {
  counted_apart_ = apart;
  steady_.Reset(oldest_steady);
  utc_.Reset(oldest_utc);
  expiry_.Reset(oldest_steady);
}

size_t HotTier::held_bytes() const {
  constexpr size_t kTreeBytes = 64;  // of a ready job out of turn
  // Every job may be leased, and a full memory must not hinder that: its lease counts from the beginning.
  const size_t leases = std::max(leases_.held_bytes() + out_of_turn_ * kTreeBytes, jobs_.live() * sizeof(Lease));
  return bodies_.held_bytes() + jobs_.held_bytes() + leases + by_uid_.held_bytes() + by_own_.held_bytes() +
         details_bytes_ + minutes_bytes_ + left_bytes_ + holders_.held_bytes() + utc_.held_bytes() +
         topic_numbers_.size() * kTopicBytes + (topics_.size() - topic_numbers_.size()) * sizeof(TopicState);
}

bool HotTier::TidyMemory(Moment now, size_t budget, bool pressed) {
  constexpr size_t kReleaseMax = 8;  // chunks in one call; each takes the system about 50 us
  constexpr size_t kLargeMax = size_t{8} << 20;
  spare_chunks_ = std::min(spare_chunks_, bodies_.pooled());
  if (now.steady >= tidy_at_) {
    tidy_at_ = now.steady + (pressed ? Millis(1000) : Millis(10'000));
    release_ = spare_chunks_;
    spare_chunks_ = bodies_.pooled();
    const size_t in_use = bodies_.held_bytes() - bodies_.pooled_bytes();
    if (move_next_ == 0 && in_use > bodies_.used_bytes() / 4 * 5 + kWasteMax && bodies_.Evacuate()) move_next_ = 1;
  }
  if (pressed) release_ = bodies_.pooled();
  const size_t released = std::min(release_, kReleaseMax);
  bodies_.Release(released);
  release_ -= released;
  if (move_next_ != 0) MoveBodies(budget);
  const bool more_large = bodies_.ReleaseLarge(kLargeMax);
  FreeEvents();
  return more_large || !left_events_.empty() || release_ > 0 || move_next_ != 0;
}

void HotTier::MoveBodies(size_t budget) {
  constexpr size_t kBytesMax = size_t{1} << 20;  // in one call
  size_t moved = 0;
  for (; budget > 0 && moved < kBytesMax && move_next_ < jobs_.end(); --budget, ++move_next_) {
    HotJob& hot = jobs_[move_next_];
    if (!bodies_.Leaving(hot.body)) continue;
    const BlobArena::Handle fresh = bodies_.Allocate(hot.body_size);
    if (fresh == 0) break;
    std::memcpy(bodies_.At(fresh), bodies_.At(hot.body), hot.body_size);
    bodies_.Free(hot.body, hot.body_size);
    hot.body = fresh;
    moved += hot.body_size;
  }
  if (budget > 0 && moved < kBytesMax) {  // all were looked at, or memory is short
    bodies_.StopEvacuating();
    move_next_ = 0;
  }
}

}  // namespace tocsin::journal
