// Cells let threads record a figure without a lock and without sharing a cache line. Each thread has a cell number; a
// figure keeps one cell for each number, and reading sums them. Threads beyond kCells share cells, which is slower but
// correct.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tocsin::metrics {

constexpr size_t kCells = 16;

/// The calling thread's cell number, below kCells.
inline size_t CellOfThread() {
  static std::atomic<size_t> threads{0};
  thread_local const size_t cell = threads.fetch_add(1, std::memory_order_relaxed) % kCells;
  return cell;
}

/// A count that many threads add to.
class Counter {
 public:
  void Add(uint64_t by = 1) { cells_[CellOfThread()].value.fetch_add(by, std::memory_order_relaxed); }
  uint64_t Value() const {
    uint64_t sum = 0;
    for (const Cell& cell : cells_) sum += cell.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct alignas(64) Cell {
    std::atomic<uint64_t> value{0};
  };
  Cell cells_[kCells];
};

/// A figure that goes up and down. The last Set wins.
class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  void Add(double by) { value_.fetch_add(by, std::memory_order_relaxed); }
  double Value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

}  // namespace tocsin::metrics
