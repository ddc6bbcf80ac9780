// TestNode: a whole service on loops that a test drives by hand, with a virtual clock that long polls follow too, over
// in-memory stores that can be made to fail. One thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "core/service.h"
#include "metrics/registry.h"
#include "spi/contract/memory_store.h"

namespace tocsin {

/// Its alarm goes off when the clock says so. A worker may post from its own thread.
class TestLoop final : public Loop {
 public:
  explicit TestLoop(const Clock& clock) : clock_(clock) {}

  void Post(Task task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  bool TryPost(Task task) override {
    ++requests;
    if (full) return false;
    Post(std::move(task));
    return true;
  }
  bool InThread() const override { return true; }
  void SetAlarm(Millis delay) override { alarm_at_ = clock_.IoNow() + delay; }
  void OnAlarm(Task handler) override { on_alarm_ = std::move(handler); }

  /// False when there was nothing to do.
  bool RunOne() {
    if (Task task = Next()) {
      task();
      return true;
    }
    if (clock_.IoNow() < alarm_at_) return false;
    alarm_at_ = std::chrono::steady_clock::time_point::max();
    if (on_alarm_) on_alarm_();
    return true;
  }
  std::chrono::steady_clock::time_point alarm_at() const { return alarm_at_; }

  bool full = false;    // TryPost is refused
  size_t requests = 0;  // calls of TryPost

 private:
  Task Next() {
    const std::lock_guard lock(mutex_);
    if (tasks_.empty()) return nullptr;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  const Clock& clock_;
  std::mutex mutex_;  // guards the next
  std::deque<Task> tasks_;
  std::chrono::steady_clock::time_point alarm_at_ = std::chrono::steady_clock::time_point::max();
  Task on_alarm_;
};

/// The topics of a store that several nodes share, as that store has them.
using SharedTopics = std::map<std::string, Topic>;

/// A store whose wake-ups can be lost, which can fail, and which can be one node's view of a shared one.
class FaultyStore final : public Store, public SharedStore {
 public:
  explicit FaultyStore(Store& inner) : inner_(inner) {}

  bool lose_ready = false;   // Advance never says that a topic has become ready
  bool hide_ready = false;   // nor do the figures
  std::optional<Code> fail;  // every call that has an answer fails, and nothing is done
  std::optional<Code> fail_puts;
  std::optional<Code> fail_claims;
  std::optional<Code> fail_settles;
  std::optional<Code> fail_advances;
  std::vector<Task>* held = nullptr;  // claims answer when the test runs these
  std::vector<Task>* held_submits = nullptr;
  std::vector<Task>* held_settles = nullptr;
  bool cut_claims = false;         // a claim hands over one job and says that there are more
  size_t list_max = SIZE_MAX;      // jobs in a page of List
  bool lists_twice = false;        // a listing begins again when it is over, once
  size_t load_max = SIZE_MAX;      // steps that Load counts at once
  size_t load_refused = SIZE_MAX;  // it refuses so many
  SharedTopics* shared = nullptr;
  TopicChanges topic_changes;    // by other nodes
  std::optional<Error> trouble;  // of a part of it, says every Advance,
  bool cut_off = false;          // or of all of it
  bool slow = false;             // an Advance answers only when it has to finish
  bool deaf = false;             // and not even then
  std::function<void(const Topic&)> before_put;
  std::function<Status(const std::string&)> before_drop;
  std::function<void()> changed;  // of the shard
  std::set<std::string> hungry;   // topics for which reserves wait

  void PutTopic(const Topic& topic, Done<void> done) override {
    if (before_put) before_put(topic);
    if (fail_puts) return done(Fail(*fail_puts, "made to fail"));
    if (Failed(done)) return;
    if (shared != nullptr) {
      const Topic current = shared->try_emplace(topic.name, topic).first->second;
      if (current.version >= topic.version && current != topic) {
        return inner_.PutTopic(current, [done = std::move(done)](Result<void>) mutable {
          done(Fail(Code::kConflict, "another node was faster"));
        });
      }
      (*shared)[topic.name] = topic;
    }
    inner_.PutTopic(topic, std::move(done));
  }
  void DropTopic(std::string_view topic, Done<void> done) override {
    if (Failed(done)) return;
    if (Status allowed = before_drop ? before_drop(std::string(topic)) : Status(); !allowed) {
      return done(std::unexpected(std::move(allowed).error()));
    }
    if (shared != nullptr) shared->erase(std::string(topic));
    inner_.DropTopic(topic, std::move(done));
  }
  bool AdoptTopic(const HeardTopic& topic) override {
    const auto known = inner_.FindFigures(topic.name);
    if (known && known->topic.version > topic.version) return false;
    inner_.PutTopic(topic, [](Result<void>) {});
    return true;
  }
  void ForgetTopic(std::string_view topic) override {
    inner_.DropTopic(topic, [](Result<void>) {});
  }
  TopicChanges TakeTopicChanges() override { return std::exchange(topic_changes, {}); }
  void OnChanged(std::function<void()> wake) override { changed = std::move(wake); }
  void SetHungry(std::string_view topic, bool is_hungry) override {
    ++hungry_calls;
    if (is_hungry) {
      hungry.emplace(topic);
    } else {
      hungry.erase(std::string(topic));
    }
  }
  void OwnGroups(const std::vector<uint32_t>&) override {}
  void OnGroupLost(std::function<void()>) override {}
  std::vector<GroupState> Groups() const override { return {}; }
  std::vector<StoreServer> Servers() const override { return {}; }
  std::optional<TopicFigures> FindFigures(std::string_view topic) const override {
    ++looks;
    auto figures = inner_.FindFigures(topic);
    if (figures && hide_ready) figures->ready = 0;
    return figures;
  }
  TopicsPage TopicsFrom(std::string_view cursor, size_t limit) const override {
    TopicsPage page = inner_.TopicsFrom(cursor, limit);
    walked += page.topics.size();
    for (TopicFigures& topic : page.topics) topic.ready = hide_ready ? 0 : topic.ready;
    return page;
  }
  void Submit(std::string_view topic, std::span<const NewJob> jobs, Moment now,
              Done<std::vector<Submitted>> done) override {
    ++submits;
    if (Failed(done)) return;
    if (held_submits != nullptr) {
      done = [this, done = std::move(done)](Result<std::vector<Submitted>> result) mutable {
        held_submits->push_back(
            [done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
      };
    }
    inner_.Submit(topic, jobs, now, std::move(done));
  }
  void Claim(std::string_view topic, JobMax max, Millis lease, Moment now, Done<JobBatch> done) override {
    ++claims;
    holders.emplace(max.holder);
    if (fail_claims) return done(Fail(*fail_claims, "made to fail"));
    if (Failed(done)) return;
    if (cut_claims) {
      return inner_.Claim(topic, {1, nullptr, max.holder}, lease, now,
                          [done = std::move(done)](Result<JobBatch> result) mutable {
                            if (result) result->more = !result->jobs.empty();
                            done(std::move(result));
                          });
    }
    if (held == nullptr) return inner_.Claim(topic, max, lease, now, std::move(done));
    inner_.Claim(topic, max, lease, now, [this, done = std::move(done)](Result<JobBatch> result) mutable {
      held->push_back([done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
    });
  }
  void Settle(std::string_view topic, std::span<const Settlement> settlements, Moment now,
              Done<std::vector<SettleOutcome>> done) override {
    ++settles;
    if (fail_settles) return done(Fail(*fail_settles, "made to fail"));
    if (Failed(done)) return;
    if (held_settles != nullptr) {
      done = [this, done = std::move(done)](Result<std::vector<SettleOutcome>> result) mutable {
        held_settles->push_back(
            [done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
      };
    }
    inner_.Settle(topic, settlements, now, std::move(done));
  }
  void Amend(std::string_view topic, std::span<const Amendment> amendments, Moment now,
             Done<std::vector<Amended>> done) override {
    ++amends;
    if (!Failed(done)) inner_.Amend(topic, amendments, now, std::move(done));
  }
  void Count(std::string_view topic, std::span<const CountEvent> events, Moment now,
             Done<std::vector<Counted>> done) override {
    ++counts;
    if (!Failed(done)) inner_.Count(topic, events, now, std::move(done));
  }
  void Find(std::string_view topic, std::span<const JobRef> jobs, JobRoom* room, Moment now,
            Done<JobBatch> done) override {
    ++finds;
    if (Failed(done)) return;
    inner_.Find(topic, jobs, room, now, [this, done = std::move(done)](Result<JobBatch> found) mutable {
      if (found) shown += found->jobs.size();
      done(std::move(found));
    });
  }
  void List(std::string_view topic, const Selector& what, std::string_view cursor, JobMax max, Moment now,
            Done<Page> done) override {
    max.jobs = std::min(max.jobs, list_max);
    ++lists;
    if (Failed(done)) return;
    constexpr std::string_view kAgain = "again ";
    const bool again = cursor.starts_with(kAgain);
    if (again) cursor.remove_prefix(kAgain.size());
    inner_.List(topic, what, cursor, max, now,
                [this, again, kAgain, done = std::move(done)](Result<Page> page) mutable {
                  if (page) shown += page->jobs.jobs.size();
                  if (page && lists_twice && (again ? !page->cursor.empty() : page->cursor.empty())) {
                    page->cursor.insert(0, kAgain);
                  }
                  done(std::move(page));
                });
  }
  void Sweep(std::string_view topic, SweepKind kind, std::string_view cursor, size_t limit, Moment now,
             Done<Swept> done) override {
    if (!Failed(done)) inner_.Sweep(topic, kind, cursor, limit, now, std::move(done));
  }
  void Load(std::string_view topic, const LoadSpan& span, Moment now, Done<LoadCounts> done) override {
    ++loads;
    if (Failed(done)) return;
    if (span.steps >= load_refused) return done(Fail(Code::kInvalidArgument, "made to refuse"));
    const LoadSpan first{span.from, span.step, std::min(span.steps, load_max)};
    inner_.Load(topic, first, now, std::move(done));
  }
  void Advance(Moment now, size_t budget, Done<Advanced> done) override {
    ++advances;
    if (fail_advances) return done(Fail(*fail_advances, "made to fail"));
    if (Failed(done)) return;
    inner_.Advance(now, budget, [this, done = std::move(done)](Result<Advanced> result) mutable {
      if (lose_ready && result) result->ready.clear();
      if (result) result->trouble = trouble;
      if (result) result->cut_off = cut_off;
      if (!slow) return done(std::move(result));
      advancing_ = [done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); };
    });
  }
  void FinishAdvance() override {
    ++finishes;
    if (advancing_ && !deaf) std::exchange(advancing_, nullptr)();
  }

  // Calls.
  size_t submits = 0;
  size_t claims = 0;
  std::set<std::string> holders;  // that claimed
  size_t settles = 0;
  size_t amends = 0;
  size_t counts = 0;
  size_t finds = 0;
  size_t lists = 0;
  size_t loads = 0;
  size_t shown = 0;  // jobs that were looked up or listed
  size_t advances = 0;
  size_t finishes = 0;
  size_t hungry_calls = 0;
  mutable size_t looks = 0;   // at the figures of one topic
  mutable size_t walked = 0;  // topics whose figures were read one after the other

 private:
  template <class T>
  bool Failed(Done<T>& done) {
    if (!fail) return false;
    done(Fail(*fail, "made to fail"));
    return true;
  }

  Store& inner_;
  Task advancing_;
};

class TestNode {
 public:
  explicit TestNode(size_t shards, bool late_answers = false, Limits limits = {}, SinkFactory* sinks = nullptr,
                    PushMemory* push_memory = nullptr)
      : limits_(limits), sinks_(sinks), push_memory_(push_memory) {
    clock.DriveIo(true);
    for (size_t i = 0; i < shards; ++i) {
      loops.push_back(std::make_unique<TestLoop>(clock));
      memory.push_back(std::make_unique<MemoryStore>(late_answers ? loops.back().get() : nullptr));
      stores.push_back(std::make_unique<FaultyStore>(*memory.back()));
    }
    Open();
  }

  /// Makes a new service over the same stores, as a restart does.
  void Open() {
    std::vector<Service::ShardParts> parts;
    for (size_t i = 0; i < loops.size(); ++i) {
      parts.push_back({loops[i].get(), stores[i].get(), shares_store ? stores[i].get() : nullptr});
    }
    service = std::make_unique<Service>(std::move(parts), clock, metrics, limits_, sinks_, push_memory_);
    service->Start();
    Run();
  }

  /// Runs the loops, in turn, until none has anything to do.
  void Run() {
    for (bool ran = true; ran;) {
      ran = false;
      for (auto& loop : loops) ran = loop->RunOne() || ran;
    }
  }

  /// Time passes, from alarm to alarm.
  void Pass(Millis by) {
    const auto end = clock.IoNow() + by;
    Run();
    while (clock.IoNow() < end) {
      auto next = end;
      for (auto& loop : loops) next = std::min(next, loop->alarm_at());
      clock.Advance(std::chrono::ceil<Millis>(next - clock.IoNow()));
      Run();
    }
  }

  Loop& at(size_t shard) { return *loops[shard % loops.size()]; }

  template <class T>
  struct Reply {
    std::optional<Result<T>> got;
    Done<T> Catch() {
      return [this](Result<T> result) { got.emplace(std::move(result)); };
    }
  };

  /// Submits jobs with these payloads and delay from `shard`, and runs until it is answered.
  Result<std::vector<Submitted>> Submit(const std::string& topic, std::vector<NewJob> jobs, size_t shard = 0) {
    Reply<std::vector<Submitted>> reply;
    service->Submit(at(shard), {topic, std::move(jobs), nullptr}, reply.Catch());
    Run();
    return std::move(*reply.got);
  }
  Result<JobBatch> Reserve(const std::string& topic, size_t max = 1, size_t shard = 0) {
    Reply<JobBatch> reply;
    service->Reserve(at(shard), {topic, max, Millis(0), Millis(0)}, reply.Catch());
    Run();
    return std::move(*reply.got);
  }
  Result<std::vector<SettleOutcome>> Settle(const std::string& topic, std::vector<Settlement> settlements,
                                            size_t shard = 0) {
    Reply<std::vector<SettleOutcome>> reply;
    service->Settle(at(shard), {topic, std::move(settlements), nullptr}, reply.Catch());
    Run();
    return std::move(*reply.got);
  }
  static TopicChange EverySetting(const Topic& topic) {
    TopicChange change;
    for (const TopicSetting& setting : TopicSettings()) change.settings.emplace_back(&setting, setting.get(topic));
    change.delivery = {.sink = topic.delivery.Pushes() ? topic.delivery.sink : "pull",
                       .settings = topic.delivery.settings};
    return change;
  }
  Result<Topic> PutTopic(Topic topic, size_t shard = 0) {
    Reply<ChangedTopic> reply;
    service->ChangeTopic(at(shard), {topic.name, EverySetting(topic)}, reply.Catch());
    Run();
    if (!*reply.got) return std::unexpected(std::move(reply.got->error()));
    return std::move((*reply.got)->topic);
  }
  struct TopicList {
    void Ask(TestNode& node, size_t shard, std::string prefix = {}) {
      const auto take = [this](TopicReport report) {
        figures.push_back(std::move(report.figures));
        return Status();
      };
      node.service->Topics(node.at(shard), std::move(prefix), take, reply.Catch());
    }
    std::vector<TopicFigures> figures;
    Reply<void> reply;
  };
  std::vector<TopicFigures> Topics() {
    TopicList list;
    list.Ask(*this, 0);
    Run();
    EXPECT_TRUE(list.reply.got->has_value());
    return std::move(list.figures);
  }
  bool Stop() {
    bool stopped = false;
    service->Stop(at(0), [&] { stopped = true; });
    Run();
    return stopped;
  }

  VirtualClock clock;
  metrics::Registry metrics;
  std::vector<std::unique_ptr<TestLoop>> loops;
  std::vector<std::unique_ptr<MemoryStore>> memory;
  std::vector<std::unique_ptr<FaultyStore>> stores;
  bool shares_store = true;  // with other nodes; of the next Open
  std::unique_ptr<Service> service;

 private:
  const Limits limits_;
  SinkFactory* const sinks_;
  PushMemory* const push_memory_;
};

}  // namespace tocsin
