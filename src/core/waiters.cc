#include "core/waiters.h"

#include <algorithm>
#include <bit>

#include "base/episode.h"
#include "base/result.h"

namespace tocsin {
namespace {

constexpr std::chrono::milliseconds kLateMax{500};  // how much longer than it asked for a reserve waits for its claim
constexpr uint32_t kWindowMin = 1;
constexpr uint32_t kWindowMax = 256;
// Of one TryRoom.
constexpr size_t kRoomTopics = 16;
constexpr size_t kRoomTries = 8;  // for each of them

constexpr uint64_t Bit(uint32_t offset) { return uint64_t{1} << offset; }
constexpr uint64_t AllOf(size_t sources) {
  return sources == 64 ? ~uint64_t{0} : Bit(static_cast<uint32_t>(sources)) - 1;
}

}  // namespace

// Keeps a queue alive while a frame uses it: answers call out, and what they call may come back here.
class Waiters::Use {
 public:
  Use(Waiters& waiters, Queue& queue) : waiters_(waiters), queue_(queue) { ++queue_.busy; }
  ~Use() {
    if (--queue_.busy > 0 || queue_.waiters > 0 || !queue_.sources.empty()) return;
    waiters_.TellSated(queue_);
    waiters_.queues_.erase(waiters_.queues_.find(queue_.topic));
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Waiters& waiters_;
  Queue& queue_;
};

void Waiters::Open(std::string_view topic, uint32_t spread, bool pushed) {
  TOCSIN_CHECK(spread >= 1 && spread <= kShardsMax);
  auto at = queues_.find(topic);
  if (at == queues_.end()) at = queues_.emplace(topic, Queue{.topic = std::string(topic)}).first;
  Queue& queue = at->second;
  const Use use(*this, queue);
  queue.sources.resize(spread);
  queue.ready = AllOf(spread);
  queue.pushed = pushed;
  for (Source& source : queue.sources) ++source.announced;
  if (queue.waiting > 0) TellHungry(queue);
  Pump(queue);
}

void Waiters::Forget(std::string_view topic) {
  const auto at = queues_.find(topic);
  if (at == queues_.end()) return;
  const Use use(*this, at->second);
  at->second.sources.clear();
  at->second.ready = 0;
  at->second.away = 0;
  at->second.cramped = 0;
  at->second.next = 0;
  at->second.pushed = false;
}

void Waiters::Announce(std::string_view topic, uint32_t offset) {
  const auto at = queues_.find(topic);
  if (at == queues_.end() || offset >= at->second.sources.size()) return;  // dropped meanwhile
  Queue& queue = at->second;
  const Use use(*this, queue);
  queue.ready |= Bit(offset);
  ++queue.sources[offset].announced;
  Pump(queue);
}

void Waiters::AskAgain() {
  for (const std::string& topic : std::exchange(away_, {})) {
    const auto at = queues_.find(topic);
    if (at == queues_.end()) continue;
    Queue& queue = at->second;
    const Use use(*this, queue);
    queue.ready |= std::exchange(queue.away, 0) & AllOf(queue.sources.size());
    Pump(queue);
  }
}

void Waiters::TryRoom() {
  for (size_t left = std::min(cramped_.size(), kRoomTopics); left > 0; --left) {
    auto turn = cramped_.upper_bound(room_turn_);
    if (turn == cramped_.end()) turn = cramped_.begin();
    room_turn_ = std::move(cramped_.extract(turn).value());
    const auto at = queues_.find(room_turn_);
    if (at == queues_.end()) continue;
    Queue& queue = at->second;
    const Use use(*this, queue);
    queue.ready |= std::exchange(queue.cramped, 0) & AllOf(queue.sources.size());
    queue.tries = std::min(queue.parked.size(), kRoomTries);
    Pump(queue);
  }
}

void Waiters::Add(Reserve reserve) {
  if (closed_) return reserve.done(JobBatch{});
  if (!reserve.own && waiters_.size() - own_ >= waiters_max_) {
    NoteOverload("too many reserves wait");
    return reserve.done(Fail(Code::kOverloaded, "{} reserves are parked: no more are allowed", waiters_max_));
  }
  auto at = queues_.find(reserve.topic);
  if (at == queues_.end()) {
    if (!reserve.waits) return reserve.done(JobBatch{});
    at = queues_.emplace(reserve.topic, Queue{.topic = reserve.topic}).first;
  }
  Queue& queue = at->second;
  const Use use(*this, queue);
  const uint64_t number = reserve.number;
  auto [slot, fresh] = waiters_.try_emplace(number);
  TOCSIN_CHECK(fresh);
  Waiter& waiter = slot->second;
  waiter.reserve = std::move(reserve);
  waiter.queue = &queue;
  waiter.arrival = ++arrivals_;
  ++queue.waiters;
  own_ += waiter.reserve.own ? 1 : 0;
  if (!waiter.reserve.waits) {
    if (queue.waiting == 0) TellSated(queue);
    waiter.unasked = AllOf(queue.sources.size());
    return Ask(waiter);
  }
  ++queue.waiting;
  TellHungry(queue);
  queue.parked.emplace(waiter.arrival, &waiter);
  Pump(queue);
  // Most reserves of a busy topic have been answered by now; only those that rest need a deadline.
  if (const auto rests = waiters_.find(number); rests != waiters_.end() && !rests->second.reserve.own) {
    rests->second.has_deadline = true;
    deadlines_.emplace(rests->second.reserve.deadline, number);
  }
}

void Waiters::Cancel(uint64_t number) {
  const auto at = waiters_.find(number);
  if (at == waiters_.end()) return;
  const Use use(*this, *at->second.queue);
  AnswerEmpty(at->second);
}

void Waiters::Claimed(uint64_t number, Result<JobBatch> result) {
  const auto at = waiters_.find(number);
  TOCSIN_CHECK(at != waiters_.end());
  Waiter& waiter = at->second;
  Queue& queue = *waiter.queue;
  const Use use(*this, queue);
  const size_t got = result ? result->jobs.size() : 0;
  waiter.claiming = false;
  waiter.cramped = waiter.cramped || (result && result->no_room);
  if (got == 0 && waiter.reserve.room) waiter.reserve.room->Lower(0, 0);
  Settle(queue, waiter, result);
  // A store that refuses writes, because it is full or away, may take them again.
  const bool away = !result && (result.error().code == Code::kUnavailable || result.error().code == Code::kStorageFull);
  if (away) {
    queue.away |= Bit(waiter.offset);
    away_.insert(queue.topic);
  }
  const bool stays = away && waiter.reserve.waits && !waiter.answered;
  if (!result && !stays && result.error().code != Code::kTopicNotFound) {
    Answer(waiter, std::move(result));
  } else if (got > 0 && waiter.answered) {
    claims_.Release(queue.topic, waiter.offset, std::move(*result));
    if (waiter.offset < queue.sources.size()) queue.ready |= Bit(waiter.offset);
    Remove(waiter);
  } else if (got > 0) {
    Answer(waiter, std::move(result));
  } else if (waiter.answered) {
    Remove(waiter);
  } else if (waiter.late) {
    Answer(waiter, JobBatch{});
  } else if (!waiter.reserve.waits) {
    Ask(waiter);
  } else {
    if (std::exchange(waiter.cramped, false)) waiter.arrival = ++arrivals_;
    queue.parked.emplace(waiter.arrival, &waiter);
  }
  Pump(queue);
}

void Waiters::Expire(IoTime now) {
  answering_.Begin();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    if (answering_.Spent()) return GoOnLater();
    const uint64_t number = deadlines_.begin()->second;
    Waiter& waiter = waiters_.at(number);
    if (waiter.queue->postponed && !waiter.claiming) {
      // There may be a job for it. Those that came before it are served first.
      const Use use(*this, *waiter.queue);
      if (Serve(*waiter.queue, answering_)) return GoOnLater();
      if (deadlines_.empty() || deadlines_.begin()->second != number) continue;
    }
    if (!waiter.claiming || waiter.late) {
      Cancel(number);
    } else {
      // What its claim brings would have to be given back, and the next short reserve might fare no better: a store
      // that is asked over a network needs longer than some reserves wait.
      deadlines_.erase(deadlines_.begin());
      waiter.late = true;
      waiter.reserve.deadline += kLateMax;
      deadlines_.emplace(waiter.reserve.deadline, number);
    }
    answering_.Did();
  }
}

IoTime Waiters::NextDeadline() const {
  return goes_on_ || deadlines_.empty() ? IoTime::max() : deadlines_.begin()->first;
}

void Waiters::GoOn(IoTime now) {
  goes_on_ = false;
  serving_.Renew();
  answering_.Renew();
  for (size_t left = postponed_.size(); left > 0 && !serving_.Spent(); --left) {
    const auto at = queues_.find(postponed_.front());
    postponed_.pop_front();
    if (at == queues_.end()) continue;
    const Use use(*this, at->second);
    at->second.postponed = false;
    Pump(at->second);
  }
  Expire(now);
  if (!postponed_.empty()) GoOnLater();
}

void Waiters::GoOnLater() {
  if (!std::exchange(goes_on_, true)) claims_.GoOnSoon();
}

void Waiters::Close() {
  closed_ = true;
  std::vector<uint64_t> numbers;
  for (const auto& [number, waiter] : waiters_) numbers.push_back(number);
  for (const uint64_t number : numbers) Cancel(number);
}

void Waiters::Pump(Queue& queue) {
  if (!Serve(queue, serving_)) return;
  if (!std::exchange(queue.postponed, true)) postponed_.push_back(queue.topic);
  GoOnLater();
}

bool Waiters::Serve(Queue& queue, TurnShare& share) {
  if (queue.pumping) return false;
  queue.pumping = true;
  bool spent = false;
  for (bool begun = false; !queue.parked.empty(); share.Did()) {
    Waiter& first = *queue.parked.begin()->second;
    const bool refused = queue.pushed && !first.reserve.own;
    const int offset = refused ? -1 : PickSource(queue, queue.ready, true);
    if (offset < 0 && !refused) break;
    spent = share.Spent();
    if (spent) break;
    if (!std::exchange(begun, true)) share.Begin();
    queue.parked.erase(queue.parked.begin());
    if (refused) {
      Answer(first, JobBatch{});
      continue;
    }
    queue.next = static_cast<uint32_t>(offset) + 1;
    Send(first, static_cast<uint32_t>(offset));
  }
  queue.pumping = false;
  return spent;
}

int Waiters::PickSource(const Queue& queue, uint64_t among, bool windowed) const {
  const auto sources = static_cast<uint32_t>(queue.sources.size());
  among &= AllOf(sources);
  if (among == 0) return -1;
  for (uint32_t i = 0; i < sources; ++i) {
    const uint32_t offset = (queue.next + i) % sources;
    if ((among & Bit(offset)) == 0) continue;
    if (!windowed || queue.sources[offset].out < queue.sources[offset].window) return static_cast<int>(offset);
  }
  return -1;
}

void Waiters::Send(Waiter& waiter, uint32_t offset) {
  Queue& queue = *waiter.queue;
  waiter.claiming = true;
  waiter.offset = offset;
  waiter.announced = queue.sources[offset].announced;
  ++queue.sources[offset].out;
  const Reserve& reserve = waiter.reserve;
  // The waiter stays until its claim is back, so the name outlives the claim on any shard.
  const JobMax max{reserve.max, reserve.room.get(), reserve.holder};
  claims_.Claim(queue.topic, offset, reserve.number, max, reserve.lease);
}

void Waiters::Ask(Waiter& waiter) {
  Queue& queue = *waiter.queue;
  int offset = PickSource(queue, waiter.unasked & queue.ready, false);
  if (offset < 0) offset = PickSource(queue, waiter.unasked, false);
  if (offset < 0 && waiter.cramped) {
    NoteOverload("no memory is left for the jobs of an answer");
    return Answer(waiter, Fail(Code::kOverloaded, "no memory is left for the jobs that are ready; none was claimed"));
  }
  if (offset < 0) return AnswerEmpty(waiter);
  queue.next = static_cast<uint32_t>(offset) + 1;
  waiter.unasked &= ~Bit(static_cast<uint32_t>(offset));
  Send(waiter, static_cast<uint32_t>(offset));
}

/// What a claim that came back says about its source.
void Waiters::Settle(Queue& queue, const Waiter& waiter, const Result<JobBatch>& result) {
  if (waiter.offset >= queue.sources.size()) return;  // dropped meanwhile
  Source& source = queue.sources[waiter.offset];
  if (source.out > 0) --source.out;
  if (result && result->no_room) {
    source.window = kWindowMin;
    if (waiter.reserve.waits) SetAside(queue, waiter.offset);
    return;
  }
  if (result && (result->jobs.size() >= waiter.reserve.max || result->more)) {
    queue.ready |= Bit(waiter.offset);
    source.window = std::min(source.window * 2, kWindowMax);
    return;
  }
  source.window = kWindowMin;
  if (source.announced == waiter.announced) queue.ready &= ~Bit(waiter.offset);
}

/// The source has jobs that there was no room for.
void Waiters::SetAside(Queue& queue, uint32_t offset) {
  if (queue.tries > 0) {
    --queue.tries;
    return;
  }
  queue.ready &= ~Bit(offset);
  queue.cramped |= Bit(offset);
  cramped_.insert(queue.topic);
}

void Waiters::Answer(Waiter& waiter, Result<JobBatch> result) {
  if (waiter.answered) return Remove(waiter);
  Done<JobBatch> done = std::move(waiter.reserve.done);
  Remove(waiter);
  done(std::move(result));
}

void Waiters::AnswerEmpty(Waiter& waiter) {
  if (waiter.answered) return;
  waiter.queue->parked.erase(waiter.arrival);
  if (!waiter.claiming) return Answer(waiter, JobBatch{});
  waiter.answered = true;  // it stays until its claim is back
  if (waiter.has_deadline) deadlines_.erase({waiter.reserve.deadline, waiter.reserve.number});
  waiter.has_deadline = false;
  Done<JobBatch> done = std::move(waiter.reserve.done);
  done(JobBatch{});
}

void Waiters::Remove(Waiter& waiter) {
  if (waiter.has_deadline) deadlines_.erase({waiter.reserve.deadline, waiter.reserve.number});
  Queue& queue = *waiter.queue;
  --queue.waiters;
  if (waiter.reserve.waits && --queue.waiting == 0 && queue.told > 0) sated_.insert(queue.topic);
  own_ -= waiter.reserve.own ? 1 : 0;
  waiters_.erase(waiter.reserve.number);
}

void Waiters::TellHungry(Queue& queue) {
  const auto spread = static_cast<uint32_t>(queue.sources.size());
  if (!tells_ || spread <= queue.told) return;
  queue.told = spread;
  claims_.SetHungry(queue.topic, spread, true);
}

void Waiters::TellSated(Queue& queue) {
  if (queue.told > 0) claims_.SetHungry(queue.topic, std::exchange(queue.told, 0), false);
}

void Waiters::TellSated() {
  for (const std::string& topic : std::exchange(sated_, {})) {
    const auto at = queues_.find(topic);
    if (at != queues_.end() && at->second.waiting == 0) TellSated(at->second);
  }
}

}  // namespace tocsin
