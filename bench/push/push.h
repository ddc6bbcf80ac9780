// What push_bench does (push_bench.cc). Each load is one thread, with bytes made beforehand if the protocol allows.
#pragma once

#include <string>

#include "load/json.h"
#include "model/job.h"
#include "shared/times.h"

namespace tocsin::bench {

struct PushOptions {
  std::string address;
  std::string name = "push_raw";
  size_t jobs = 100'000;
  size_t payload = 128;
  size_t in_flight = 0;  // 0: the load's own
  size_t time_limit_s = 120;
  bool remove = false;
  bool lazy = false;
};

/// Counts and times a load; dies at its time limit.
class PushMeter {
 public:
  explicit PushMeter(const PushOptions& options)
      : jobs_(options.jobs), deadline_(began_ + std::chrono::seconds(options.time_limit_s)) {}

  /// `confirmed` so far.
  void Check(size_t confirmed) const {
    if (SteadyClock::now() > deadline_) Die("{} of {} jobs were confirmed within the time limit", confirmed, jobs_);
  }
  Json Result() const {
    Json out;
    const double seconds = Seconds(SteadyClock::now() - began_);
    if (jobs_ > 0) out.Number("per_s", static_cast<double>(jobs_) / seconds);
    return out.Count("jobs", jobs_);
  }

 private:
  const size_t jobs_;
  const Instant began_ = SteadyClock::now();
  const Instant deadline_;
};

/// A job as the server would hand it to a sink. `payload` outlives it.
inline JobView SampleJob(std::string_view payload) {
  JobView job;
  job.uid = 123'456'789'012'345;
  job.attempt = 1;
  job.due = FromMs(1'700'000'000'000);
  job.token = {.slot = 1, .handle = 123'456, .fence = 123'456'789};
  job.payload = payload;
  return job;
}

void Receive(const PushOptions& options);
Json LoadWebhook(const PushOptions& options);
Json LoadKafka(const PushOptions& options);
Json LoadRabbitMq(const PushOptions& options);

}  // namespace tocsin::bench
