#include "core/shard.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "base/log.h"
#include "base/result.h"
#include "core/scatter.h"

namespace tocsin {
namespace {

constexpr size_t kAdvanceBudget = 2000;
constexpr std::chrono::seconds kScanEvery{1};
constexpr Millis kPatience{500};
constexpr Millis kSatedAfter{10};
constexpr size_t kSweepBatch = 1000;
constexpr size_t kScanTopics = 256;  // in one step

}  // namespace

Shard::Shard(Node& node, uint32_t index, Loop& loop, Store& store, SharedStore* shared)
    : node_(node),
      index_(index),
      loop_(loop),
      store_(store),
      shared_(shared),
      topics_(node.placement, node.metrics, node.limits.topics),
      waiters_(*this, node.clock, node.limits.waiters, node.limits.topics, shared != nullptr),
      stalls_(node.metrics.GetHistogram("tocsin_shard_stall_seconds",
                                        "How long after its time a shard's alarm was served.")) {}

void Shard::Deliver(Shard& there, Task work, Task refuse) {
  if (!bundling_) {
    if (!there.TrySend(std::move(work))) refuse();
    return;
  }
  parcels_.resize(node_.shards.size());
  parcels_[there.index()].push_back({std::move(work), std::move(refuse)});
}

void Shard::EndBundle() {
  bundling_ = false;
  for (size_t i = 0; i < parcels_.size(); ++i) {
    if (parcels_[i].empty()) continue;
    const auto parcels = std::make_shared<std::vector<Parcel>>(std::exchange(parcels_[i], {}));
    const bool sent = node_.shards[i]->TrySend([parcels] {
      for (Parcel& parcel : *parcels) parcel.work();
    });
    if (sent) continue;
    for (Parcel& parcel : *parcels) parcel.refuse();
  }
}

void Shard::Begin(std::vector<Topic> missing) {
  loop_.OnAlarm([this] { OnAlarm(); });
  if (shared_ != nullptr) shared_->OnChanged([this] { Changed(); });
  missing_ = std::move(missing);
  PutMissing();
  Advance();
  begun_ = true;
  for (auto& [topic, dispatcher] : dispatchers_) dispatcher->Schedule();
}

void Shard::PutMissing() {
  for (const Topic& topic : std::exchange(missing_, {})) {
    ++started_;
    store_.PutTopic(topic, [this, topic](Result<void> result) {
      --started_;
      Note(result);
      // A conflict says that the store has a newer version by now.
      if (!result && result.error().code != Code::kConflict) missing_.push_back(topic);
      CheckQuiet();
    });
  }
}

void Shard::Stop(Task quiet) {
  TOCSIN_CHECK(!stopped_);
  stopped_ = true;
  if (shared_ != nullptr) shared_->OnChanged([] {});
  quiet_ = std::move(quiet);
  for (auto& [topic, dispatcher] : dispatchers_) dispatcher->Stop();
  waiters_.Close();
  waiters_.TellSated();  // other nodes get what this one was told of
  for (Task& looker : std::exchange(lookers_, {})) looker();
  RunLater(IoTime::max());
  CheckQuiet();
}

void Shard::AwaitQuiet(Task quiet) {
  TOCSIN_CHECK(stopped_ && !quiet_);
  quiet_ = std::move(quiet);
  CheckQuiet();
}

void Shard::RunAt(IoTime at, Task task) {
  if (stopped_) return task();
  later_.emplace(at, std::move(task));
  if (at < alarm_at_) Rearm();
}

void Shard::RunLater(IoTime now) {
  while (!later_.empty() && later_.begin()->first <= now) {
    Task task = std::move(later_.begin()->second);
    later_.erase(later_.begin());
    task();
  }
}

void Shard::Look(Task done) {
  if (stopped_) return done();
  lookers_.push_back(std::move(done));
  changed_ = true;
  next_scan_ = IoTime::min();
  Advance();
}

void Shard::Changed() {
  changed_ = true;
  if (tick_posted_ || stopped_) return;
  tick_posted_ = true;
  ++started_;
  Send([this] {
    tick_posted_ = false;
    --started_;
    if (changed_) Advance();
    CheckQuiet();
  });
}

void Shard::OnAlarm() {
  const IoTime now = node_.clock.IoNow();
  if (now > alarm_at_) stalls_->Record(now - alarm_at_);
  alarm_at_ = IoTime::max();
  WakeDispatchers(now);
  RunLater(now);
  if (now >= finish_at_) {
    finish_at_ = IoTime::max();
    if (shared_ != nullptr) shared_->FinishAdvance();
  }
  Advance();
  if (now >= room_at_) {
    room_at_ = IoTime::max();
    waiters_.TryRoom();
    AwaitRoom();
  }
  waiters_.Expire(now);  // after it: a job that is due at the deadline is still delivered
  if (now >= sated_at_) {
    sated_at_ = IoTime::max();
    waiters_.TellSated();
  }
  AwaitSated();
  Rearm();
}

void Shard::Advance() {
  if (stopped_) return;
  if (advancing_) {
    changed_ = true;
    return;
  }
  changed_ = false;
  advancing_ = true;
  ++started_;
  finish_at_ = node_.clock.IoNow() + kPatience;
  store_.Advance(Now(), kAdvanceBudget, [this](Result<Advanced> result) { OnAdvanced(std::move(result)); });
  if (advancing_ && alarm_at_ > finish_at_) Rearm();
}

void Shard::OnAdvanced(Result<Advanced> result) {
  advancing_ = false;
  finish_at_ = IoTime::max();
  --started_;
  Note(result);
  if (stopped_) return CheckQuiet();
  next_due_ = IoTime::max();
  NoteOutage(result);
  if (result) {
    const Moment now = Now();
    // At least 1 ms: a time that has passed, without `more`, would make the alarm spin.
    const auto in = [](Time next, Time at) { return next == kNever ? Millis::max() : std::max(next - at, Millis(1)); };
    // While the wall clock stands still, wait as long again: it may never reach a job that is due in a ms.
    if (now.utc != utc_moved_.utc) utc_moved_ = now;
    const Millis utc_wait = std::max(in(result->next_utc, now.utc), now.steady - utc_moved_.steady);
    const Millis wait = std::min(in(result->next_steady, now.steady), utc_wait);
    if (wait < kScanEvery) next_due_ = node_.clock.IoNow() + wait;
    if (!result->ready.empty()) Announce(result->ready);
    if (index_ == 0) node_.on_advanced();
  }
  if (node_.clock.IoNow() >= next_scan_) Scan();
  if ((result && result->more) || changed_) {
    Changed();
  } else {
    for (Task& looker : std::exchange(lookers_, {})) looker();
  }
  Rearm();
}

void Shard::NoteOutage(const Result<Advanced>& result) {
  const Error* const trouble = !result ? &result.error() : result->trouble ? &*result->trouble : nullptr;
  if (trouble == nullptr && !failing_) return;
  if (trouble == nullptr) {
    LogInfo("shard {}: the store looks for due jobs again", index_);
    node_.SetOutage(index_, std::nullopt);
    waiters_.AskAgain();
  } else {
    if (!failing_) {
      LogWarn("shard {}: the store cannot look for due jobs, asking every second: {}", index_, trouble->message);
    }
    std::optional<Error> cut_off;
    if (!result || result->cut_off) cut_off = Error(*trouble).Prefixed("the store cannot look for due jobs");
    node_.SetOutage(index_, std::move(cut_off));
  }
  failing_ = trouble != nullptr;
}

void Shard::Scan() {
  next_scan_ = node_.clock.IoNow() + kScanEvery;
  PutMissing();
  waiters_.AskAgain();
  if (!std::exchange(scanning_, true)) ScanSome();
}

void Shard::ScanSome() {
  // Two parts, so that all are freed in the end, also if there are fewer topics now.
  outdated_.resize(outdated_.size() - std::min<size_t>(outdated_.size(), 2));
  TopicsPage page = store_.TopicsFrom(scan_cursor_, kScanTopics);
  std::vector<std::string> ready;
  std::vector<FiguresRow> rows;
  rows.reserve(page.topics.size());
  const Time now = node_.clock.Now().utc;
  for (const TopicFigures& topic : page.topics) {
    if (topic.ready > 0) ready.push_back(topic.topic.name);
    rows.push_back(RowOf(topic, now));
    const auto pushed = dispatchers_.find(topic.topic.name);
    if (pushed != dispatchers_.end()) rows.back().push = pushed->second->trouble();
  }
  if (!ready.empty()) Announce(ready);
  scanned_.push_back(std::make_shared<const std::vector<FiguresRow>>(std::move(rows)));
  scan_cursor_ = std::move(page.cursor);
  if (scan_cursor_.empty()) {
    std::ranges::move(node_.board.Publish(index_, std::exchange(scanned_, {})), std::back_inserter(outdated_));
    scanning_ = false;
    if (index_ == 0 && node_.on_scanned) node_.on_scanned();
    return;
  }
  ++started_;
  // Before the steps of callers: a wake-up that was lost waits for this scan.
  steps_.push_front([this] {
    --started_;
    if (!stopped_) ScanSome();
    CheckQuiet();
  });
  if (steps_.size() + walk_steps_.size() == 1) PostStep();
}

void Shard::InTurn(Task step) { AddStep(steps_, std::move(step)); }

void Shard::InWalkTurn(Task step) { AddStep(walk_steps_, std::move(step)); }

void Shard::AddStep(std::deque<Task>& steps, Task step) {
  steps.push_back(std::move(step));
  if (steps_.size() + walk_steps_.size() == 1) PostStep();
}

void Shard::PostStep() {
  Send([this] {
    walked_ = steps_.empty() || (!walked_ && !walk_steps_.empty());
    std::deque<Task>& steps = walked_ ? walk_steps_ : steps_;
    Task step = std::move(steps.front());
    steps.pop_front();
    if (!steps_.empty() || !walk_steps_.empty()) PostStep();
    step();
  });
}

void Shard::Announce(const std::vector<std::string>& topics) {
  if (node_.shards.size() == 1) return Announced(*this, topics);
  std::vector<std::vector<std::string>> by_home(node_.shards.size());
  for (const std::string& topic : topics) by_home[node_.placement.HomeOf(topic)].push_back(topic);
  for (size_t home = 0; home < by_home.size(); ++home) {
    if (by_home[home].empty()) continue;
    if (home == index_) {
      Announced(*this, by_home[home]);
    } else {
      Shard& there = *node_.shards[home];
      there.Send([&there, this, names = std::move(by_home[home])] { there.Announced(*this, names); });
    }
  }
}

void Shard::Announced(Shard& from, std::span<const std::string> topics) {
  for (const std::string& topic : topics) {
    const TopicEntry* entry = topics_.Find(topic);
    if (entry == nullptr || entry->topic.paused) continue;  // when it appears or resumes, Waiters asks every shard
    waiters_.Announce(topic, node_.placement.OffsetOf(index_, from.index()));
  }
}

void Shard::Rearm() {
  const IoTime now = node_.clock.IoNow();
  const IoTime wake = wakes_.empty() ? IoTime::max() : wakes_.begin()->first;
  if (stopped_ && wake == IoTime::max()) return;
  // An Advance that is under way sets the alarm again.
  IoTime work = std::min(next_due_, next_scan_);
  if (advancing_) work = std::min(finish_at_, now + kScanEvery);
  if (stopped_) work = now + kScanEvery;
  const IoTime later = later_.empty() ? IoTime::max() : later_.begin()->first;
  const IoTime at = std::min({work, wake, later, room_at_, sated_at_, waiters_.NextDeadline()});
  const auto delay = std::chrono::ceil<Millis>(at - now);
  alarm_at_ = at;
  loop_.SetAlarm(std::max(delay, Millis(0)));
}

void Shard::KnowTopic(const Topic& topic) {
  if (index_ == 0 && begun_) {
    const bool created = topics_.Find(topic.name) == nullptr;
    node_.events.Publish(EventKind::kTopicChanged, topic.name, TopicChangedEvent{topic, created});
  }
  topics_.Put(topic);
  if (node_.placement.HomeOf(topic.name) != index_) return;
  const bool pushes = topic.delivery.Pushes();
  waiters_.Open(topic.name, node_.placement.SpreadOf(topic.slots), pushes);
  Push(topic.name, pushes ? std::optional(topic) : std::nullopt);
}

void Shard::ForgetTopic(const std::string& topic) {
  if (index_ == 0 && topics_.Find(topic) != nullptr) node_.events.Publish(EventKind::kTopicDropped, topic, {});
  topics_.Erase(topic);
  waiters_.Forget(topic);
  Push(topic, std::nullopt);
}

void Shard::Push(const std::string& topic, std::optional<Topic> wanted) {
  auto at = dispatchers_.find(topic);
  if (at == dispatchers_.end()) {
    if (!wanted || stopped_) return;
    at = dispatchers_.emplace(topic, std::make_unique<Dispatcher>(node_, *this, topic)).first;
  }
  if (stopped_) return;
  at->second->Want(std::move(wanted));
  if (begun_) at->second->Schedule();
}

void Shard::Probe(const std::string& topic, Done<Probed> done) {
  const auto at = dispatchers_.find(topic);
  if (at == dispatchers_.end()) return done(std::unexpected(Dispatcher::NoSink(topic)));
  at->second->Probe(std::move(done));
}

void Shard::Describe(DeliveryReport& report) const {
  const auto at = dispatchers_.find(report.topic);
  if (at != dispatchers_.end()) at->second->Describe(report);
}

void Shard::RunSoon(Task task) {
  ++started_;
  Send([this, task = std::move(task)]() mutable {
    --started_;
    task();
    CheckQuiet();
  });
}

void Shard::Settle(SettleRequest request, Done<std::vector<SettleOutcome>> done) {
  TopicEntry* const entry = topics_.Find(request.topic);
  if (entry == nullptr) return done(NoSuchTopic(request.topic));
  OpenCall();
  Scatter<SettleUse>(node_, *entry, std::move(request), Call<std::vector<SettleOutcome>>{this, std::move(done)});
}

void Shard::MoveWake(Dispatcher& dispatcher, IoTime from, IoTime to) {
  wakes_.erase({from, &dispatcher});
  if (to == IoTime::max()) return;
  wakes_.emplace(to, &dispatcher);
  if (to < alarm_at_) Rearm();
}

void Shard::WakeDispatchers(IoTime now) {
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    Dispatcher& dispatcher = *wakes_.begin()->second;
    wakes_.erase(wakes_.begin());
    dispatcher.Tick();
  }
}

void Shard::Ended(const std::string& topic) { dispatchers_.erase(dispatchers_.find(topic)); }

void Shard::Reserve(Waiters::Reserve reserve) {
  const TopicEntry* entry = reserve.own ? nullptr : topics_.Find(reserve.topic);
  if (entry != nullptr && entry->topic.delivery.Pushes()) {
    return reserve.done(Fail(Code::kConflict, "topic {} is pushed to its sink {}: its jobs cannot be reserved",
                             reserve.topic, entry->topic.delivery.sink));
  }
  const IoTime deadline = reserve.deadline;
  const bool waits = reserve.waits;
  waiters_.Add(std::move(reserve));
  if (waits && deadline < alarm_at_ && waiters_.NextDeadline() <= deadline) Rearm();
}

void Shard::CancelReserve(uint64_t number) {
  waiters_.Cancel(number);
  AwaitSated();
}

void Shard::SetHungry(const std::string& topic, uint32_t spread, bool hungry) {
  for (uint32_t offset = 0; offset < spread; ++offset) {
    Shard& there = *node_.shards[node_.placement.ShardOf(index_, offset)];
    if (&there == this) {
      shared_->SetHungry(topic, hungry);
      continue;
    }
    ++started_;
    there.Send([&there, this, topic, hungry] {
      there.shared_->SetHungry(topic, hungry);
      Send([this] {
        --started_;
        CheckQuiet();
      });
    });
  }
}

void Shard::GoOnSoon() {
  RunSoon([this] {
    waiters_.GoOn(node_.clock.IoNow());
    AwaitSated();
    Rearm();
  });
}

void Shard::AwaitSated() {
  if (stopped_ || !waiters_.HasSated() || sated_at_ != IoTime::max()) return;
  sated_at_ = node_.clock.IoNow() + kSatedAfter;
  if (sated_at_ < alarm_at_) Rearm();
}

struct Shard::Sweeping {
  std::string topic;
  SweepKind kind;
  Done<size_t> done;
  std::string cursor;
  size_t changed = 0;
};

void Shard::Sweep(std::string topic, SweepKind kind, Done<size_t> done) {
  SweepNext(std::make_shared<Sweeping>(std::move(topic), kind, std::move(done)));
}

void Shard::SweepNext(std::shared_ptr<Sweeping> sweeping) {
  const auto take = [this, sweeping](Result<Swept> result) {
    Note(result);
    Changed();
    if (!result) return sweeping->done(std::unexpected(std::move(result).error()));
    sweeping->changed += result->changed;
    sweeping->cursor = std::move(result->cursor);
    if (sweeping->cursor.empty()) return sweeping->done(sweeping->changed);
    InTurn([this, sweeping] { SweepNext(sweeping); });
  };
  store_.Sweep(sweeping->topic, sweeping->kind, sweeping->cursor, kSweepBatch, Now(), take);
}

void Shard::CloseCall() {
  --open_;
  CheckQuiet();
}

void Shard::CheckQuiet() {
  if (!stopped_ || !quiet_ || open_ > 0 || started_ > 0 || !waiters_.Idle() || !dispatchers_.empty()) return;
  loop_.OnAlarm([] {});
  std::exchange(quiet_, nullptr)();
}

}  // namespace tocsin
