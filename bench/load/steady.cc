#include "load/workload_parts.h"

namespace tocsin::bench {
namespace {

constexpr int64_t kLeastDelayMs = 1'000;
constexpr int64_t kMostDelayMs = 5'000;
constexpr size_t kWindow = 64;  // an open load waits for nobody, within reason
constexpr auto kHeldWithin = std::chrono::seconds(1);
constexpr auto kWaitForRest = std::chrono::seconds(10);

class SteadyLoad {
 public:
  SteadyLoad(const Subject& subject, size_t jobs)
      : jobs_(jobs),
        rounding_(std::chrono::milliseconds(subject.protocol.tuning().rounding_ms)),
        engine_(subject.options, subject.protocol, subject.endpoints, jobs, kWindow),
        batches_(jobs, engine_.batch, kLeastDelayMs, kMostDelayMs),
        step_(static_cast<int64_t>(1e9 * static_cast<double>(engine_.batch) /
                                   static_cast<double>(subject.options.rate))) {
    ledger().keeps_lateness = true;
    ledger().lateness.Reserve(jobs);
  }

  void Run() {
    began_ = SteadyClock::now();
    wall_began_ns_ = WallNanos();
    engine_.StartConsumers();
    const Instant end = TimeOf(jobs_ / engine_.batch);
    const Instant last_due = end + std::chrono::milliseconds(kMostDelayMs) + rounding_;
    while (ledger().acked < jobs_) {
      const Instant now = SteadyClock::now();
      if (now < end + kHeldWithin) SubmitUntil(now);
      if (now > last_due + kWaitForRest) return;
      engine_.Turn(next_at());
      NoteProgress(end, last_due);
    }
  }

  Ledger& ledger() { return engine_.ledger; }
  /// All was stored within a second of the time, and all consumed within a second of the last due time.
  bool held() const { return stored_in_time_ && consumed_in_time_; }
  double lag_s() const { return Seconds(most_behind_); }

 private:
  Instant TimeOf(size_t batch) const { return began_ + step_ * static_cast<int64_t>(batch); }
  Instant next_at() const {
    const Instant later = SteadyClock::now() + std::chrono::milliseconds(100);
    return batches_.empty() || blocked_ ? later : std::min(later, TimeOf(sent_));
  }

  void SubmitUntil(Instant now) {
    for (; !batches_.empty() && TimeOf(sent_) <= now; ++sent_) {
      const Instant since = TimeOf(sent_);
      most_behind_ = std::max<Nanos>(most_behind_, now - since);
      blocked_ = !engine_.Submit(batches_.Front(wall_began_ns_ + (since - began_).count()), since);
      if (blocked_) return;
      batches_.Pop();
    }
  }

  void NoteProgress(Instant end, Instant last_due) {
    const Instant now = SteadyClock::now();
    if (!stored_in_time_ && ledger().submitted == jobs_) stored_in_time_ = now <= end + kHeldWithin;
    if (ledger().acked == jobs_) consumed_in_time_ = now <= last_due + kHeldWithin;
  }

  const size_t jobs_;
  const Nanos rounding_;
  Engine engine_;
  Batches batches_;
  const Nanos step_;
  Instant began_;
  int64_t wall_began_ns_ = 0;
  size_t sent_ = 0;       // batches
  bool blocked_ = false;  // until an answer comes
  Nanos most_behind_{};
  bool stored_in_time_ = false;
  bool consumed_in_time_ = false;
};

}  // namespace

void Steady(const Subject& subject, Json& out) {
  const Options& options = subject.options;
  const size_t jobs = options.jobs;
  SteadyLoad load(subject, jobs);
  CpuMeter meter;
  meter.Start();
  load.Run();
  meter.Stop();
  Ledger& ledger = load.ledger();
  CheckNoneEarly(ledger);
  if (load.held()) CheckAll(ledger, jobs);
  out.Count("rate", options.rate).Bool("held", load.held());
  out.Count("submitted", ledger.submitted).Count("consumed", ledger.acked).Number("submit_behind_s_max", load.lag_s());
  // Of what a server pushes nobody here sees anything: it has its own histogram.
  if (!subject.protocol.tuning().pushes) out.Object("lateness_ms", Milliseconds(ledger.lateness, ledger));
  out.Object("latency_us", Microseconds(ledger.latency));
  AddEnd(out, meter, ledger);
}

}  // namespace tocsin::bench
