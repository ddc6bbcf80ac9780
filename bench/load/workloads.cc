#include "load/workloads.h"

#include "load/workload_parts.h"

namespace tocsin::bench {
namespace {

constexpr int64_t kLeastDelayMs = 1'000;
constexpr int64_t kMostDelayMs = 5'000;
constexpr int64_t kKeepsUpMs = 20;

constexpr std::pair<std::string_view, void (*)(const Subject&, Json&)> kWorkloads[] = {
    {"drain", Drain}, {"life", Life}, {"steady", Steady}, {"submit", Submit}, {"backlog", Submit}};

Instant Soon() { return SteadyClock::now() + std::chrono::milliseconds(100); }

double PerSecond(size_t jobs, Nanos time) { return static_cast<double>(jobs) / Seconds(time); }

/// How many jobs of life were due by a moment, to tell waiting from work.
class DueCounts {
 public:
  explicit DueCounts(int64_t start_ms) : start_ms_(start_ms) {}

  void Add(const Jobs& jobs) {
    const auto at = static_cast<size_t>(jobs.due_ms - start_ms_);
    if (at >= counts_.size()) counts_.resize(at + 1);
    counts_[at] += jobs.count;
  }
  size_t Until(int64_t now_ms) {
    for (; next_ < counts_.size() && start_ms_ + static_cast<int64_t>(next_) <= now_ms; ++next_) sum_ += counts_[next_];
    return sum_;
  }

 private:
  const int64_t start_ms_;
  std::vector<size_t> counts_;
  size_t next_ = 0;
  size_t sum_ = 0;
};

}  // namespace

void CheckNoneEarly(const Ledger& ledger) {
  if (ledger.early > 0) Die("{} jobs were delivered before they were due", ledger.early);
}

void CheckAll(const Ledger& ledger, size_t jobs) {
  CheckNoneEarly(ledger);
  if (ledger.delivered != jobs) Die("{} of {} jobs were delivered", ledger.delivered, jobs);
}

Json Milliseconds(Times& times, const Ledger& ledger) {
  Json out;
  out.Number("p50", times.Ms(0.5)).Number("p99", times.Ms(0.99)).Number("p999", times.Ms(0.999));
  return out.Number("max", times.Ms(1)).Count("count", times.size()).Count("early", ledger.early);
}

Json Microseconds(Times& times) {
  Json out;
  out.Number("p50", times.Ms(0.5) * 1e3).Number("p99", times.Ms(0.99) * 1e3).Number("p999", times.Ms(0.999) * 1e3);
  return out.Number("max", times.Ms(1) * 1e3);
}

void AddEnd(Json& out, const CpuMeter& meter, const Ledger& ledger) {
  out.Number("seconds", meter.seconds()).Number("load_cpu_cores", meter.cores());
  out.Count("repeated", ledger.repeated).Count("errors", ledger.stale);
}

void Drain(const Subject& subject, Json& out) {
  const Options& options = subject.options;
  const Tuning& tuning = subject.protocol.tuning();
  const double ahead = options.ahead > 0 ? options.ahead : 1 + static_cast<double>(options.jobs) / tuning.submit_per_s;
  Engine engine(options, subject.protocol, subject.endpoints, options.jobs, tuning.window);
  CpuMeter meter;
  meter.Start();
  const Instant began = SteadyClock::now();
  const int64_t due_ns = WallNanos() + static_cast<int64_t>(ahead * 1e9);
  Batches batches(options.jobs, engine.batch, 0, 0);
  while (engine.ledger.submitted < options.jobs) {
    while (!batches.empty() && engine.Submit(batches.Front(due_ns), SteadyClock::now())) batches.Pop();
    engine.Turn(Soon());
  }
  out.Number("submit_per_s", PerSecond(options.jobs, SteadyClock::now() - began));
  meter.Stop();
  const bool overtaken = WallNanos() > due_ns;
  const int64_t ready_ns = due_ns + tuning.rounding_ms * 1'000'000;
  while (WallNanos() < ready_ns) engine.Turn(std::min(Soon(), SteadyClock::now() + Nanos(ready_ns - WallNanos())));

  meter.Start();
  const Instant due = SteadyClock::now();
  engine.StartConsumers();
  while (engine.ledger.acked < options.jobs) engine.Turn(Soon());
  out.Number("drain_per_s", PerSecond(options.jobs, SteadyClock::now() - due));
  meter.Stop();
  CheckAll(engine.ledger, options.jobs);
  if (overtaken) out.Bool("due_before_all_submitted", true);
  AddEnd(out, meter, engine.ledger);
}

void Life(const Subject& subject, Json& out) {
  const Options& options = subject.options;
  Engine engine(options, subject.protocol, subject.endpoints, options.jobs, subject.protocol.tuning().window);
  const Ledger& ledger = engine.ledger;
  CpuMeter meter;
  meter.Start();
  const Instant began = SteadyClock::now();
  DueCounts due(WallNanos() / 1'000'000);
  Batches batches(options.jobs, engine.batch, kLeastDelayMs, kMostDelayMs);
  engine.StartConsumers();
  Nanos submitting{};
  Nanos idle{};
  while (ledger.acked < options.jobs) {
    while (!batches.empty() && ledger.sent - ledger.acked < options.pending) {
      const Jobs jobs = batches.Front(WallNanos());
      if (!engine.Submit(jobs, SteadyClock::now())) break;
      due.Add(jobs);
      batches.Pop();
    }
    const Instant before = SteadyClock::now();
    const bool waits =
        ledger.submitted == options.jobs && ledger.acked >= due.Until(WallNanos() / 1'000'000 - kKeepsUpMs);
    engine.Turn(Soon());
    if (waits) idle += SteadyClock::now() - before;
    if (submitting == Nanos(0) && ledger.submitted == options.jobs) submitting = SteadyClock::now() - began;
  }
  const Nanos took = SteadyClock::now() - began;
  meter.Stop();
  CheckAll(ledger, options.jobs);
  out.Number("life_per_s", PerSecond(options.jobs, took));
  // Without the time at the end in which all was submitted and nothing was due that was not acknowledged.
  out.Number("life_without_wait_per_s", PerSecond(options.jobs, took - idle));
  out.Number("submit_per_s", PerSecond(options.jobs, submitting));
  AddEnd(out, meter, ledger);
}

void Submit(const Subject& subject, Json& out) {
  const Options& options = subject.options;
  Engine engine(options, subject.protocol, subject.endpoints, options.jobs, subject.protocol.tuning().window);
  Ledger& ledger = engine.ledger;
  CpuMeter meter;
  meter.Start();
  const size_t last_fifth = options.jobs - options.jobs / 5;
  const Instant began = SteadyClock::now();
  std::optional<std::pair<Instant, size_t>> at_last_fifth;
  Batches batches(options.jobs, engine.batch, kHourMs, 24 * kHourMs);
  while (ledger.submitted < options.jobs) {
    while (!batches.empty() && engine.Submit(batches.Front(WallNanos()), SteadyClock::now())) batches.Pop();
    engine.Turn(Soon());
    if (!at_last_fifth && ledger.submitted >= last_fifth) at_last_fifth.emplace(SteadyClock::now(), ledger.submitted);
  }
  const Instant end = SteadyClock::now();
  meter.Stop();
  out.Number("submit_per_s", PerSecond(options.jobs, end - began));
  if (at_last_fifth && at_last_fifth->second < options.jobs) {
    out.Number("submit_last_fifth_per_s", PerSecond(options.jobs - at_last_fifth->second, end - at_last_fifth->first));
  }
  out.Object("latency_us", Microseconds(ledger.latency));
  AddEnd(out, meter, ledger);
}

std::string WorkloadNames() {
  std::string names;
  for (const auto& [name, run] : kWorkloads) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  return names;
}

Json RunWorkload(const Options& given, Protocol& protocol, const std::vector<Endpoint>& endpoints) {
  Options options = given;
  if (options.workload == "steady") {
    options.jobs = static_cast<size_t>(options.seconds * static_cast<double>(options.rate));
    if (options.batch == 0) options.batch = std::max<size_t>(1, options.rate / 1000);  // a submit every millisecond
  }
  const Subject subject{.options = options, .protocol = protocol, .endpoints = endpoints};
  const Tuning& tuning = protocol.tuning();
  for (const auto& [name, run] : kWorkloads) {
    if (name != options.workload) continue;
    Json out;
    out.Text("driver", options.driver).Text("workload", name).Text("mode", options.mode).Count("jobs", options.jobs);
    out.Count("batch", BatchOf(options, tuning)).Count("connections", ConnectionsOf(options, tuning));
    out.Count("payload", options.payload);
    run(subject, out);
    if (!tuning.note.empty()) out.Text("note", tuning.note);
    return out;
  }
  Die("--workload is {}, not one of {}", options.workload.empty() ? "missing" : options.workload, WorkloadNames());
}

}  // namespace tocsin::bench
