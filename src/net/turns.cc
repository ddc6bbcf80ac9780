#include "net/turns.h"

#include <algorithm>
#include <ctime>
#include <string>

#include "base/log.h"

namespace tocsin::net {
namespace {

constexpr std::chrono::seconds kLogEvery{10};
constexpr Millis kReadCpuEvery{1};

std::chrono::nanoseconds CpuTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

double Seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

int64_t WholeMillis(std::chrono::nanoseconds time) { return std::chrono::duration_cast<Millis>(time).count(); }

std::shared_ptr<metrics::Counter> LongTurns(metrics::Registry& metrics, size_t shard, std::string cause) {
  return metrics.GetCounter("tocsin_shard_long_turns_total",
                            "Handlers that kept the shard's thread for more than 5 ms.",
                            {{"shard", std::to_string(shard)}, {"cause", std::move(cause)}});
}

}  // namespace

Turns::Turns(metrics::Registry& metrics, size_t shard)
    : shard_(shard),
      longest_(metrics.GetGauge("tocsin_shard_turn_seconds_max",
                                "The longest time that a handler kept the shard's thread.",
                                {{"shard", std::to_string(shard)}})),
      longest_cpu_(metrics.GetGauge("tocsin_shard_turn_cpu_seconds_max",
                                    "The longest CPU time of a handler, of those that took more than 5 ms.",
                                    {{"shard", std::to_string(shard)}})),
      computed_(LongTurns(metrics, shard, "cpu")),
      waited_(LongTurns(metrics, shard, "wait")) {}

void Turns::Begin() {
  begun_ = std::chrono::steady_clock::now();
  if (begun_ < read_cpu_at_) return;
  read_cpu_at_ = begun_ + kReadCpuEvery;
  cpu_time_ = CpuTime();
}

void Turns::End() {
  const IoTime now = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds took = now - begun_;
  if (took > longest_took_) {
    longest_took_ = took;
    longest_->Set(Seconds(took));
  }
  if (took > kLong) NoteLong(now, took);
}

void Turns::NoteLong(IoTime now, std::chrono::nanoseconds took) {
  const std::chrono::nanoseconds computed = std::min(took, CpuTime() - cpu_time_);
  (computed > kLong ? computed_ : waited_)->Add();
  if (computed > longest_computed_) {
    longest_computed_ = computed;
    longest_cpu_->Set(Seconds(computed));
  }
  if (now < log_at_) return;
  log_at_ = now + kLogEvery;
  LogWarn("shard {}: a turn took {} ms, {} ms of them CPU time, and others waited for it", shard_, WholeMillis(took),
          WholeMillis(computed));
}

}  // namespace tocsin::net
