// PushMemory: the memory of jobs on their way to receivers, over all topics of a node. Dispatchers take room before
// they claim jobs. A store that keeps its jobs in memory counts this against the same limit.
//
// Owned by the composition root; outlives the stores and the service. Thread-safe.
//
// Receivers that hang must not take everything, so:
//  - A topic that holds something takes more only while it holds no more than is left.
//  - Topics whose receivers take long (PushShare::prompt) have half of it together, and one job more each up to three
//    quarters. The last quarter is for receivers that answer soon.
// If nothing is held, one job has room however large it is: it could never be sent otherwise.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "spi/store.h"

namespace tocsin {

/// What one topic holds.
struct PushShare {
  std::atomic<size_t> bytes = 0;
  std::atomic<bool> prompt = false;  // its receiver answered soon, the last time
};

class PushMemory {
 public:
  struct Bounds {
    size_t limit = 0;  // of the jobs in memory and of this together
    size_t most = 0;
    size_t least = 0;  // also if jobs leave less of the limit
  };

  explicit PushMemory(Bounds bounds) : bounds_(bounds) {}
  PushMemory(const PushMemory&) = delete;
  PushMemory& operator=(const PushMemory&) = delete;

  /// What jobs in memory take. Before the loops run; outlives the last Take.
  void CountJobs(const std::atomic<uint64_t>& bytes) { jobs_bytes_ = &bytes; }

  /// False, without effect, if there is no room.
  [[nodiscard]] bool Take(size_t more, PushShare& share) {
    const size_t before = bytes_.fetch_add(more, std::memory_order_relaxed);
    const size_t held = share.bytes.load(std::memory_order_relaxed);
    const size_t max = Max();
    const size_t part = share.prompt.load(std::memory_order_relaxed) ? max : held > 0 ? max / 2 : max / 4 * 3;
    if (before > 0 && (before + more > part || before + more + held > max)) {
      bytes_.fetch_sub(more, std::memory_order_relaxed);
      return false;
    }
    share.bytes.fetch_add(more, std::memory_order_relaxed);
    return true;
  }
  void Give(size_t bytes, PushShare& share) {
    share.bytes.fetch_sub(bytes, std::memory_order_relaxed);
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  size_t Max() const {
    const size_t jobs = jobs_bytes_ == nullptr ? 0 : jobs_bytes_->load(std::memory_order_relaxed);
    const size_t left = bounds_.limit - std::min(bounds_.limit, jobs);
    return std::max(std::min(left, bounds_.most), bounds_.least);
  }

  const Bounds bounds_;
  const std::atomic<uint64_t>* jobs_bytes_ = nullptr;
  std::atomic<size_t> bytes_ = 0;
};

/// The room of one claim, for as long as its jobs are in memory. Owned by the reserve, and then with the jobs by the
/// dispatcher and the sink; one thread at a time uses it, as JobRoom says, and any may destroy it. The memory outlives
/// it.
class PushRoom final : public JobRoom {
 public:
  PushRoom(PushMemory& memory, std::shared_ptr<PushShare> share) : memory_(memory), share_(std::move(share)) {}
  ~PushRoom() override { Lower(0, 0); }
  PushRoom(const PushRoom&) = delete;
  PushRoom& operator=(const PushRoom&) = delete;

  bool Reach(size_t jobs, size_t bytes) override {
    const size_t needed = BytesOf(jobs, bytes);
    if (needed <= bytes_) return true;
    if (!memory_.Take(needed - bytes_, *share_)) return false;
    bytes_ = needed;
    return true;
  }
  void Lower(size_t jobs, size_t bytes) override {
    const size_t needed = jobs == 0 ? 0 : BytesOf(jobs, bytes);
    if (needed >= bytes_) return;
    memory_.Give(bytes_ - needed, *share_);
    bytes_ = needed;
  }

 private:
  /// The copy that the store makes, and what a sink makes of it.
  static size_t BytesOf(size_t jobs, size_t bytes) {
    constexpr size_t kJobBytes = 1 << 10;  // its views, the header of its request, what is kept for its answer
    return jobs * kJobBytes + 2 * bytes;
  }

  PushMemory& memory_;
  const std::shared_ptr<PushShare> share_;  // a claim may outlive the topic
  size_t bytes_ = 0;
};

}  // namespace tocsin
