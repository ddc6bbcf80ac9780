#include "metrics/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tocsin::metrics {
namespace {

constexpr uint64_t kLargestUs = uint64_t{1} << 32;

}  // namespace

// A bucket's bound belongs to it ("le" of the text format), so values are shifted down by one before they are placed.
size_t Histogram::BucketOf(uint64_t us) {
  const uint64_t x = std::min(us, kLargestUs) - (us > 0 ? 1 : 0);
  if (x < (1U << kStepBits)) return x;
  const auto octave = static_cast<unsigned>(std::bit_width(x)) - 1;
  const uint64_t step = (x >> (octave - kStepBits)) & ((1U << kStepBits) - 1);
  return ((octave - kStepBits + 1) << kStepBits) + step;
}

uint64_t Histogram::BoundOf(size_t bucket) {
  if (bucket < (1U << kStepBits)) return bucket + 1;
  const size_t octave = (bucket >> kStepBits) - 1;
  const uint64_t step = bucket & ((1U << kStepBits) - 1);
  return ((1U << kStepBits) + step + 1) << octave;
}

void Histogram::Snapshot::Add(const Snapshot& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets[i] += other.buckets[i];
  count += other.count;
  sum_seconds += other.sum_seconds;
}

Histogram::Snapshot Histogram::Snapshot::Since(const Snapshot& earlier) const {
  Snapshot since;
  for (size_t i = 0; i < kBuckets; ++i) since.buckets[i] = buckets[i] - earlier.buckets[i];
  since.count = count - earlier.count;
  since.sum_seconds = sum_seconds - earlier.sum_seconds;
  return since;
}

double Histogram::Snapshot::Quantile(double q) const {
  if (count == 0) return 0;
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(count);
  double below = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    const auto here = static_cast<double>(buckets[i]);
    if (here > 0 && below + here >= rank) {
      const double low = i == 0 ? 0 : static_cast<double>(BoundOf(i - 1));
      const double high = static_cast<double>(BoundOf(i));
      return (low + (high - low) * (rank - below) / here) / 1e6;
    }
    below += here;
  }
  return static_cast<double>(kLargestUs) / 1e6;
}

Histogram::~Histogram() {
  for (auto& cell : cells_) delete cell.load(std::memory_order_relaxed);
}

void Histogram::Record(std::chrono::nanoseconds took, uint64_t times) {
  const int64_t ns = std::max<int64_t>(took.count(), 0);
  Cell& cell = OwnCell();
  cell.buckets[BucketOf(static_cast<uint64_t>(ns / 1000 + (ns % 1000 != 0)))].fetch_add(times,
                                                                                        std::memory_order_relaxed);
  cell.sum_seconds.fetch_add(static_cast<double>(ns) / 1e9 * static_cast<double>(times), std::memory_order_relaxed);
}

Histogram::Snapshot Histogram::Read() const {
  Snapshot snapshot;
  for (const auto& pointer : cells_) {
    const Cell* cell = pointer.load(std::memory_order_acquire);
    if (cell == nullptr) continue;
    for (size_t i = 0; i < kBuckets; ++i) {
      const uint64_t here = cell->buckets[i].load(std::memory_order_relaxed);
      snapshot.buckets[i] += here;
      snapshot.count += here;
    }
    snapshot.sum_seconds += cell->sum_seconds.load(std::memory_order_relaxed);
  }
  return snapshot;
}

Histogram::Cell& Histogram::OwnCell() {
  auto& slot = cells_[CellOfThread()];
  Cell* cell = slot.load(std::memory_order_acquire);
  if (cell != nullptr) return *cell;
  auto* fresh = new Cell;
  if (slot.compare_exchange_strong(cell, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;  // another thread that shares this cell was faster
  return *cell;
}

}  // namespace tocsin::metrics
