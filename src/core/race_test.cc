// Real threads, the real clock: producers and consumers on every shard. Every job is delivered once and none early,
// also while consumers come and go, or a sink is closed and opened; then everything stops. TSan watches.
#include <atomic>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/codec.h"
#include "core/figures.h"
#include "core/service.h"
#include "spi/contract/memory_store.h"
#include "spi/sink.h"

namespace tocsin {
namespace {

/// A loop on a thread of its own.
class ThreadLoop final : public Loop {
 public:
  ~ThreadLoop() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_one();
  }
  void Start() {
    thread_ = std::jthread([this] { Run(); });
  }

  void Post(Task task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_one();
  }
  bool TryPost(Task task) override {
    const std::lock_guard lock(mutex_);
    if (tasks_.size() >= 4096) return false;
    tasks_.push_back(std::move(task));
    wake_.notify_one();
    return true;
  }
  bool InThread() const override { return std::this_thread::get_id() == thread_.get_id(); }
  void SetAlarm(Millis delay) override { alarm_at_ = std::chrono::steady_clock::now() + delay; }
  void OnAlarm(Task handler) override { on_alarm_ = std::move(handler); }

 private:
  void Run() {
    std::vector<Task> batch;
    while (true) {
      {
        std::unique_lock lock(mutex_);
        const auto ready = [&] { return !tasks_.empty() || ending_; };
        if (alarm_at_ == std::chrono::steady_clock::time_point::max()) {
          wake_.wait(lock, ready);
        } else {
          wake_.wait_until(lock, alarm_at_, ready);
        }
        if (ending_) return;
        batch.swap(tasks_);
      }
      for (Task& task : batch) task();
      batch.clear();
      if (std::chrono::steady_clock::now() < alarm_at_) continue;
      alarm_at_ = std::chrono::steady_clock::time_point::max();
      if (on_alarm_) on_alarm_();
    }
  }

  std::mutex mutex_;  // guards the next two
  std::vector<Task> tasks_;
  bool ending_ = false;
  std::condition_variable wake_;
  std::chrono::steady_clock::time_point alarm_at_ = std::chrono::steady_clock::time_point::max();
  Task on_alarm_;
  std::jthread thread_;  // last: it uses the others
};

/// Confirms everything a turn later, and shows it to `seen` on the loop's thread.
class PostingSinks final : public SinkFactory {
 public:
  using Seen = std::function<void(const JobBatch&)>;
  explicit PostingSinks(Seen seen) : seen_(std::move(seen)) {}

  Status Check(const Topic&) const override { return {}; }
  Result<std::unique_ptr<Sink>> Open(const Topic&, Loop& loop) override {
    ++opened;
    return std::make_unique<PostingSink>(loop, seen_);
  }

  std::atomic<size_t> opened = 0;

 private:
  class PostingSink final : public Sink {
   public:
    PostingSink(Loop& loop, const Seen& seen) : loop_(loop), seen_(seen) {}
    void Deliver(std::shared_ptr<const JobBatch> batch, Answer answer) override {
      loop_.Post([this, batch = std::move(batch), answer = std::move(answer)]() mutable {
        seen_(*batch);
        for (size_t i = 0; i < batch->jobs.size(); ++i) answer(i, {});
      });
    }
    void Close(Task done) override { loop_.Post(std::move(done)); }

   private:
    Loop& loop_;
    const Seen& seen_;
  };

  const Seen seen_;
};

/// Room that all reserves share. What one of them has is a plain number: TSan sees if two threads use it at once.
class PoolRoom final : public JobRoom {
 public:
  explicit PoolRoom(std::atomic<size_t>& left) : left_(left) {}
  ~PoolRoom() override { Lower(0, 0); }
  PoolRoom(const PoolRoom&) = delete;
  PoolRoom& operator=(const PoolRoom&) = delete;

  bool Reach(size_t /*jobs*/, size_t bytes) override {
    if (bytes <= bytes_) return true;
    const size_t more = bytes - bytes_;
    size_t left = left_;
    while (left >= more) {
      if (!left_.compare_exchange_weak(left, left - more)) continue;
      bytes_ = bytes;
      return true;
    }
    return false;
  }
  void Lower(size_t /*jobs*/, size_t bytes) override {
    if (bytes >= bytes_) return;
    left_ += bytes_ - bytes;
    bytes_ = bytes;
  }

 private:
  std::atomic<size_t>& left_;
  size_t bytes_ = 0;
};

constexpr size_t kJobs = 20'000;
constexpr size_t kBatch = 50;
constexpr size_t kProducers = 4;
constexpr size_t kConsumers = 4;

class RaceTest : public testing::TestWithParam<size_t> {
 protected:
  RaceTest() : delivered_(kJobs) {
    for (size_t i = 0; i < GetParam(); ++i) {
      loops_.push_back(std::make_unique<ThreadLoop>());
      stores_.push_back(std::make_unique<MemoryStore>(i % 2 ? loops_.back().get() : nullptr));
    }
    std::vector<Service::ShardParts> parts;
    for (size_t i = 0; i < loops_.size(); ++i) parts.push_back({loops_[i].get(), stores_[i].get()});
    service_ = std::make_unique<Service>(std::move(parts), clock_, metrics_, Limits{}, &sinks_);
    service_->Start();
    for (auto& loop : loops_) loop->Start();
  }

  ThreadLoop& LoopOf(size_t i) { return *loops_[i % loops_.size()]; }

  /// A payload is the job's number and the earliest moment at which it may be seen, on the steady timeline.
  void Produce(size_t producer, size_t next) {
    if (next >= kJobs / kProducers) return;
    if (pushes_ && next % (10 * kBatch) == 0) ChangeSink(producer, producer + next + 1);
    struct Batch {
      std::string payloads[kBatch];
      std::string ids[kBatch];
    };
    auto bytes = std::make_shared<Batch>();
    SubmitRequest request{"race", std::vector<NewJob>(kBatch), bytes};
    const Time now = clock_.Now().steady;
    for (size_t i = 0; i < kBatch; ++i) {
      const size_t number = producer * (kJobs / kProducers) + next + i;
      const Millis delay(number * 7 % 40);
      PutFixed<uint64_t>(bytes->payloads[i], number);
      PutFixed<int64_t>(bytes->payloads[i], ToMs(now + delay));
      if (number % 3 == 0) bytes->ids[i] = std::to_string(number);
      request.jobs[i].payload = bytes->payloads[i];
      request.jobs[i].id = bytes->ids[i];
      request.jobs[i].delay = delay;
    }
    service_->Submit(LoopOf(producer), std::move(request), [=, this](Result<std::vector<Submitted>> result) {
      ASSERT_TRUE(result) << result.error().message;
      for (const Submitted& one : *result) ASSERT_EQ(one.outcome, SubmitOutcome::kAccepted);
      // Through the loop, so that stores that answer at once do not deepen the stack.
      LoopOf(producer).Post([=, this] { Produce(producer, next + kBatch); });
    });
  }

  void Consume(size_t consumer, size_t round) {
    // Some long polls are taken back at once: what they had got already must go to somebody else.
    const bool leave = round % 5 == consumer;
    const auto room = std::make_shared<PoolRoom>(room_left_);
    const ReserveId id =
        service_->Reserve(LoopOf(consumer), {"race", 20 + consumer * 30, Millis(leave ? 3 : 5000), Millis(0), "", room},
                          [=, this](Result<JobBatch> result) {
                            if (!result) {
                              ASSERT_EQ(result.error().code, Code::kShuttingDown);
                              return;
                            }
                            if (!result->jobs.empty()) room->Lower(1, 100);
                            Deliver(consumer, *result);
                            LoopOf(consumer).Post([=, this] { Consume(consumer, round + 1); });
                          });
    if (leave) service_->CancelReserve(id);
  }

  void See(const JobBatch& batch) {
    const Time now = clock_.Now().steady;
    for (const JobView& job : batch.jobs) {
      Reader reader(job.payload);
      const auto number = reader.Fixed<uint64_t>();
      ASSERT_LT(number, kJobs);
      ASSERT_GE(ToMs(now), reader.Fixed<int64_t>()) << "early";
      ASSERT_EQ(delivered_[number].fetch_add(1), 0) << "twice";
    }
  }

  void Deliver(size_t consumer, const JobBatch& batch) {
    if (batch.jobs.empty()) return;
    See(batch);
    SettleRequest request{"race", {}, nullptr};
    for (const JobView& job : batch.jobs) request.settlements.push_back({.token = job.token});
    const auto count = static_cast<ptrdiff_t>(batch.jobs.size());
    service_->Settle(LoopOf(consumer), std::move(request), [=, this](Result<std::vector<SettleOutcome>> result) {
      ASSERT_TRUE(result);
      for (const SettleOutcome outcome : *result) ASSERT_EQ(outcome, SettleOutcome::kOk);
      acked_.count_down(count);
    });
  }

  /// Changes the topic's delivery, so that its sink is closed and another one opened.
  void ChangeSink(size_t producer, size_t round) {
    TopicChange change;
    change.delivery = DeliveryChange{
        .sink = "webhook", .settings = {{"url", "http://receiver/"}, {"in_flight", std::to_string(1000 + round)}}};
    service_->ChangeTopic(LoopOf(producer), {"race", change}, [=, this](Result<ChangedTopic> result) {
      ASSERT_TRUE(result || result.error().code == Code::kShuttingDown) << result.error().message;
      if (round == 0) configured_.count_down();
    });
  }

  void StopAndCheck() {
    std::latch stopped(1);
    LoopOf(1).Post([&] { service_->Stop(LoopOf(1), [&] { stopped.count_down(); }); });
    stopped.wait();
    loops_.clear();
    uint64_t acked = 0;
    for (const auto& store : stores_) {
      for (const TopicFigures& figures : store->Topics()) {
        acked += figures.acked;
        EXPECT_EQ(ConservationDifference(figures), 0);
        EXPECT_EQ(figures.scheduled + figures.leased, 0U);
      }
    }
    EXPECT_EQ(acked, kJobs);
  }

  RealClock clock_;
  metrics::Registry metrics_;
  PostingSinks sinks_{[this](const JobBatch& batch) {
    See(batch);
    acked_.count_down(static_cast<ptrdiff_t>(batch.jobs.size()));
  }};
  std::vector<std::atomic<int>> delivered_;
  std::latch acked_{kJobs};
  std::latch configured_{1};
  std::atomic<bool> pushes_ = false;
  std::atomic<size_t> room_left_ = SIZE_MAX / 2;
  std::vector<std::unique_ptr<MemoryStore>> stores_;
  std::unique_ptr<Service> service_;
  std::vector<std::unique_ptr<ThreadLoop>> loops_;  // last: their threads use the others
};

INSTANTIATE_TEST_SUITE_P(Shards, RaceTest, testing::Values(2, 4));

TEST_P(RaceTest, EveryJobOnceAndNoneEarly) {
  for (size_t i = 0; i < kProducers; ++i) LoopOf(i).Post([=, this] { Produce(i, 0); });
  for (size_t i = 0; i < kConsumers; ++i) LoopOf(i).Post([=, this] { Consume(i, 0); });
  acked_.wait();
  StopAndCheck();
}

TEST_P(RaceTest, EveryJobOnceWithLittleRoom) {
  constexpr size_t kRoom = 4'000;
  room_left_ = kRoom;
  for (size_t i = 0; i < kProducers; ++i) LoopOf(i).Post([=, this] { Produce(i, 0); });
  for (size_t i = 0; i < kConsumers; ++i) LoopOf(i).Post([=, this] { Consume(i, 0); });
  acked_.wait();
  StopAndCheck();
  service_.reset();
  EXPECT_EQ(room_left_, kRoom);
}

TEST_P(RaceTest, EveryJobIsPushedOnceWhileItsSinkChanges) {
  pushes_ = true;
  LoopOf(0).Post([this] { ChangeSink(0, 0); });
  configured_.wait();
  for (size_t i = 0; i < kProducers; ++i) LoopOf(i).Post([=, this] { Produce(i, 0); });
  acked_.wait();
  StopAndCheck();
  EXPECT_GT(sinks_.opened, 1U);
}

}  // namespace
}  // namespace tocsin
