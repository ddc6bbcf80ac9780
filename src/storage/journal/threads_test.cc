// The embedded store as the server runs it: real files, the committer's threads, a thread for each shard. Tens of
// thousands of jobs go through, and after a restart, with another number of shards, each is accounted for. TSan
// watches.
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "model/placement.h"
#include "storage/journal/open.h"

namespace tocsin::journal {
namespace {

constexpr size_t kBatch = 100;
constexpr size_t kBatches = 250;  // of each shard
constexpr size_t kLater = 10;     // of each batch: due in a year

class WaitingLoop final : public Loop {
 public:
  void Post(Task task) override {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_one();
  }
  bool TryPost(Task task) override {
    Post(std::move(task));
    return true;
  }
  bool InThread() const override { return true; }
  void SetAlarm(Millis) override {}
  void OnAlarm(Task) override {}

  /// Runs what was posted; waits for something first where `wait` says so.
  void Run(bool wait) {
    std::unique_lock lock(mutex_);
    if (wait) wake_.wait(lock, [this] { return !tasks_.empty(); });
    std::deque<Task> tasks = std::exchange(tasks_, {});
    lock.unlock();
    for (Task& task : tasks) task();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
};

/// Submits, claims and acks on one shard until every job that is due was acked.
class Worker {
 public:
  Worker(Store& store, WaitingLoop& loop, const Clock& clock, uint32_t slot)
      : store_(store), loop_(loop), clock_(clock), slot_(slot) {}

  void Run() {
    store_.PutTopic(DefaultTopic("jobs"), [this](const Status& done) { good_ = good_ && done.has_value(); });
    while (good_ && acked_ < kBatches * (kBatch - kLater)) {
      while (batches_ < kBatches && waiting_ < 4) Submit();
      const size_t claimed = Claim();
      loop_.Run(claimed == 0 && waiting_ > 0);
    }
    while (good_ && waiting_ > 0) loop_.Run(true);
  }

  bool good() const { return good_; }
  size_t acked() const { return acked_; }

 private:
  void Submit() {
    const std::string payload(100, 'p');
    std::vector<NewJob> jobs(kBatch, NewJob{.payload = payload, .slot = slot_});
    for (size_t i = 0; i < kLater; ++i) jobs[i].delay = std::chrono::days(365);
    ++batches_;
    ++waiting_;
    store_.Submit("jobs", jobs, clock_.Now(), [this](Result<std::vector<Submitted>> outcomes) {
      --waiting_;
      good_ = good_ && outcomes && std::ranges::all_of(*outcomes, [](const Submitted& each) {
                return each.outcome == SubmitOutcome::kAccepted;
              });
    });
  }

  size_t Claim() {
    const Moment now = clock_.Now();
    size_t claimed = 0;
    store_.Advance(now, 1'000, [](const Result<Advanced>&) {});
    store_.Claim("jobs", {500}, Millis(60'000), now, [&](Result<JobBatch> batch) {
      good_ = good_ && batch.has_value();
      if (!batch || batch->jobs.empty()) return;
      claimed = batch->jobs.size();
      std::vector<Settlement> acks;
      for (const JobView& job : batch->jobs) acks.push_back({.token = job.token});
      ++waiting_;
      store_.Settle("jobs", acks, now, [this](Result<std::vector<SettleOutcome>> outcomes) {
        --waiting_;
        good_ = good_ && outcomes.has_value();
        if (!outcomes) return;
        acked_ += static_cast<size_t>(std::ranges::count(*outcomes, SettleOutcome::kOk));
      });
    });
    return claimed;
  }

  Store& store_;
  WaitingLoop& loop_;
  const Clock& clock_;
  const uint32_t slot_;
  bool good_ = true;
  size_t batches_ = 0;
  size_t waiting_ = 0;
  size_t acked_ = 0;
};

class ThreadsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tocsin-threads-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Options With(uint32_t shards) const {
    Options options;
    options.folder = folder_ + "/data";
    options.shards = shards;
    options.segment_bytes = 1 << 20;
    return options;
  }

  void CheckRecovered(uint32_t shards, size_t expected) {
    RealClock clock;
    auto node = NodeStore::Open(*fs_, With(shards), clock);
    ASSERT_TRUE(node) << node.error().message;
    std::deque<WaitingLoop> loops(shards);
    for (uint32_t shard = 0; shard < shards; ++shard) (*node)->Bind(shard, loops[shard]);
    (*node)->Start();
    size_t scheduled = 0;
    for (uint32_t shard = 0; shard < shards; ++shard) {
      for (const TopicFigures& figures : (*node)->store(shard).Topics()) scheduled += figures.scheduled;
    }
    EXPECT_EQ(scheduled, expected) << shards << " shards";
    EXPECT_EQ((*node)->jobs_recovered(), expected);
    EXPECT_TRUE((*node)->Close());
  }

  const std::unique_ptr<FileSystem> fs_ = MakePosixFileSystem();
  std::string folder_;
};

TEST_F(ThreadsTest, EveryJobIsAccountedFor) {
  constexpr uint32_t kShards = 2;
  RealClock clock;
  auto node = NodeStore::Open(*fs_, With(kShards), clock);
  ASSERT_TRUE(node) << node.error().message;
  std::deque<WaitingLoop> loops(kShards);
  std::deque<Worker> workers;
  const Placement placement{kShards};
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    (*node)->Bind(shard, loops[shard]);
    const uint32_t slot = placement.OffsetOf(placement.HomeOf("jobs"), shard);
    workers.emplace_back((*node)->store(shard), loops[shard], clock, slot);
  }
  (*node)->Start();
  {
    std::vector<std::jthread> threads;
    for (Worker& worker : workers) threads.emplace_back([&worker] { worker.Run(); });
  }
  for (const Worker& worker : workers) {
    EXPECT_TRUE(worker.good());
    EXPECT_EQ(worker.acked(), kBatches * (kBatch - kLater));
  }
  EXPECT_GT((*node)->journal().last_segment(), 4);
  ASSERT_TRUE((*node)->Close());
  node->reset();
  for (const uint32_t shards : {1U, 3U, 2U}) CheckRecovered(shards, kShards * kBatches * kLater);
}

}  // namespace
}  // namespace tocsin::journal
