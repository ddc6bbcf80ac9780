// Benchmarks of the embedded store in process: one shard, its committer, the real clock and a real folder.
//
//   store_bench life    [--jobs N] [--batch N] [--repeat N] [--dir D] [--durability fsync|interval|os]
//   store_bench backlog [--jobs N] [--batch N] [--repeat N] [--dir D]
//
// life: whole job lives (submit with a delay of 1-5 s, due, claim, ack) as fast as they go, every submit and every ack
// acknowledged after its sync. backlog: jobs due in 1-24 h are submitted; the memory and disk that they take, and how
// long a start takes that recovers them. 128-byte payloads, server ids.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include <sys/resource.h>

#include "base/file.h"
#include "base/loop.h"
#include "storage/journal/open.h"

namespace tocsin {
namespace {

using Seconds = std::chrono::duration<double>;
using Stopwatch = std::chrono::steady_clock;

constexpr size_t kPayload = 128;
constexpr std::string_view kTopic = "bench";

struct Arguments {
  std::string mode;
  size_t jobs = 0;
  size_t batch = 1000;
  int repeat = 5;
  std::string dir = "bench-data";
  journal::Durability durability = journal::Durability::kFsync;
};

/// The shard's loop: the main thread drains what the committer posts.
class BenchLoop final : public Loop {
 public:
  void Post(Task task) override {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
    waiting_.store(true, std::memory_order_release);
  }
  bool TryPost(Task task) override {
    Post(std::move(task));
    return true;
  }
  bool InThread() const override { return true; }
  void SetAlarm(Millis) override {}
  void OnAlarm(Task) override {}

  void Run() {
    if (!waiting_.load(std::memory_order_acquire)) return;
    std::vector<Task> tasks;
    {
      const std::scoped_lock lock(mutex_);
      tasks.swap(tasks_);
      waiting_ = false;
    }
    for (Task& task : tasks) task();
  }

 private:
  std::mutex mutex_;
  std::vector<Task> tasks_;
  std::atomic<bool> waiting_ = false;
};

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "store_bench: %s\n", message.c_str());
  std::exit(1);
}

size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

double ProcessCpuSeconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& tv) {
    return static_cast<double>(tv.tv_sec) + static_cast<double>(tv.tv_usec) / 1e6;
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class Bench {
 public:
  explicit Bench(const Arguments& arguments) : arguments_(arguments), payload_(kPayload, 'x') {}

  void Open() {
    journal::Options options;
    options.folder = arguments_.dir;
    options.durability = arguments_.durability;
    auto node = journal::NodeStore::Open(*fs_, options, clock_);
    if (!node) Die(node.error().message);
    node_ = std::move(*node);
    node_->Bind(0, loop_);
    node_->Start();
  }
  void Close() {
    if (const Status closed = node_->Close(); !closed) Die(closed.error().message);
    node_.reset();
  }
  void Create() {
    std::filesystem::remove_all(arguments_.dir);
    Open();
    Topic topic;
    topic.name = kTopic;
    topic.slots = 1;
    node_->store(0).PutTopic(topic, [](Status) {});
  }

  /// Submits a batch with delays between `least` and `most`; false while too many wait for the committer.
  void Submit(size_t count, Millis least, Millis most) {
    jobs_.assign(count, NewJob{});
    std::uniform_int_distribution<int64_t> delay(least.count(), most.count());
    for (NewJob& job : jobs_) {
      job.delay = Millis(delay(random_));
      job.payload = payload_;
    }
    in_flight_ += count;
    node_->store(0).Submit(kTopic, jobs_, clock_.Now(), [this](Result<std::vector<Submitted>> result) {
      if (!result) Die(result.error().message);
      for (const Submitted& each : *result) {
        if (each.outcome != SubmitOutcome::kAccepted) Die("a job was refused");
      }
      in_flight_ -= result->size();
      accepted_ += result->size();
    });
  }

  void ClaimAndAck() {
    node_->store(0).Claim(kTopic, {arguments_.batch}, Millis(30'000), clock_.Now(), [this](Result<JobBatch> batch) {
      if (!batch) Die(batch.error().message);
      if (batch->jobs.empty()) return;
      settlements_.clear();
      for (const JobView& job : batch->jobs) settlements_.push_back({.token = job.token});
      node_->store(0).Settle(kTopic, settlements_, clock_.Now(), [this](Result<std::vector<SettleOutcome>> result) {
        if (!result) Die(result.error().message);
        for (const SettleOutcome outcome : *result) {
          if (outcome != SettleOutcome::kOk) Die("an ack was refused");
        }
        acked_ += result->size();
      });
    });
  }

  /// Answers, what is due, upkeep.
  void Turn() {
    loop_.Run();
    node_->store(0).Advance(clock_.Now(), 4000, [](Result<Advanced> advanced) {
      if (!advanced) Die(advanced.error().message);
    });
  }

  double Life() {
    Create();
    constexpr size_t kInFlightMax = 20'000;
    const auto begun = Stopwatch::now();
    const double cpu = ProcessCpuSeconds();
    size_t submitted = 0;
    while (acked_ < arguments_.jobs) {
      Turn();
      if (submitted < arguments_.jobs && in_flight_ < kInFlightMax) {
        const size_t count = std::min(arguments_.batch, arguments_.jobs - submitted);
        Submit(count, Millis(1000), Millis(5000));
        submitted += count;
      }
      ClaimAndAck();
    }
    const double seconds = Seconds(Stopwatch::now() - begun).count();
    const auto& figures = node_->journal().figures();
    const auto lives = static_cast<double>(arguments_.jobs);
    std::printf(
        "life: %.0f lives/s  (%zu lives, batches of %zu, %.2f s, %.2f cores, %.1f journal bytes a life, %lu syncs, %zu "
        "segments)\n",
        lives / seconds, arguments_.jobs, arguments_.batch, seconds, (ProcessCpuSeconds() - cpu) / seconds,
        static_cast<double>(figures.bytes_written.load()) / lives, figures.syncs.load(), node_->journal().segments());
    std::fflush(stdout);
    Close();
    acked_ = accepted_ = 0;
    return lives / seconds;
  }

  void Backlog() {
    Create();
    const size_t before = ResidentBytes();
    const auto begun = Stopwatch::now();
    size_t submitted = 0;
    while (accepted_ < arguments_.jobs) {
      Turn();
      if (submitted < arguments_.jobs && in_flight_ < 100'000) {
        const size_t count = std::min(arguments_.batch, arguments_.jobs - submitted);
        Submit(count, std::chrono::hours(1), std::chrono::hours(24));
        submitted += count;
      }
    }
    const double seconds = Seconds(Stopwatch::now() - begun).count();
    const auto jobs = static_cast<double>(arguments_.jobs);
    const double memory = static_cast<double>(ResidentBytes() - before) / jobs;
    std::printf(
        "backlog: %.0f submits/s, %.1f bytes of RAM a job besides its %zu-byte payload, %.1f bytes of disk a job\n",
        jobs / seconds, memory - kPayload, kPayload,
        static_cast<double>(node_->journal().segments() * node_->journal().segment_bytes()) / jobs);
    Close();
    std::vector<double> times;
    for (int i = 0; i < arguments_.repeat; ++i) {
      const auto opened = Stopwatch::now();
      Open();
      times.push_back(Seconds(Stopwatch::now() - opened).count());
      if (node_->jobs_recovered() != arguments_.jobs) Die("jobs are missing after the restart");
      std::printf("recovery: %.2f s for %zu jobs\n", times.back(), arguments_.jobs);
      std::fflush(stdout);
      Close();
    }
    std::printf("recovery median: %.2f s\n", Median(times));
    std::filesystem::remove_all(arguments_.dir);
  }

 private:
  const Arguments arguments_;
  const std::string payload_;
  std::unique_ptr<FileSystem> fs_ = MakePosixFileSystem();
  RealClock clock_;
  BenchLoop loop_;
  std::unique_ptr<journal::NodeStore> node_;
  std::mt19937_64 random_{1};
  std::vector<NewJob> jobs_;
  std::vector<Settlement> settlements_;
  size_t in_flight_ = 0;
  size_t accepted_ = 0;
  size_t acked_ = 0;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  if (argc > 1) arguments.mode = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--jobs") {
      arguments.jobs = std::stoull(value);
    } else if (name == "--batch") {
      arguments.batch = std::stoull(value);
    } else if (name == "--repeat") {
      arguments.repeat = std::stoi(value);
    } else if (name == "--dir") {
      arguments.dir = value;
    } else if (name == "--durability") {
      arguments.durability = value == "os"         ? journal::Durability::kOs
                             : value == "interval" ? journal::Durability::kInterval
                                                   : journal::Durability::kFsync;
    } else {
      Die("unknown option " + std::string(name));
    }
  }
  if (arguments.jobs == 0) arguments.jobs = arguments.mode == "life" ? 4'000'000 : 10'000'000;
  return arguments;
}

int Run(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  if (arguments.mode == "backlog") {
    Bench(arguments).Backlog();
    return 0;
  }
  if (arguments.mode != "life") Die("usage: store_bench life|backlog [--jobs N] [--batch N] [--repeat N] [--dir D]");
  std::vector<double> rates;
  for (int i = 0; i < arguments.repeat; ++i) rates.push_back(Bench(arguments).Life());
  std::ranges::sort(rates);
  std::printf("life median: %.0f lives/s, from %.0f to %.0f\n", Median(rates), rates.front(), rates.back());
  std::filesystem::remove_all(arguments.dir);
  return 0;
}

}  // namespace
}  // namespace tocsin

int main(int argc, char** argv) { return tocsin::Run(argc, argv); }
