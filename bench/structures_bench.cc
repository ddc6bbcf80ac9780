// The structures of the embedded store, at 10 k to 10 M entries. per_item, where shown, is CPU time per operation;
// otherwise the time column is.
//   cmake --preset release && ninja -C build/release structures_bench && build/release/bin/structures_bench
#include <algorithm>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/hash.h"
#include "storage/journal/blob_arena.h"
#include "storage/journal/id_table.h"
#include "storage/journal/slab.h"
#include "storage/journal/wheel.h"

namespace tocsin::journal {
namespace {

constexpr int64_t kStart = 1'800'000'000'000;

struct Job : WheelItem {
  uint64_t rest[3] = {};  // the rest of a job: 56 bytes in all
  uint32_t used = 1;

  void MarkFree(uint32_t link) {
    next = link;
    used = 0;
  }
  uint32_t NextFree() const { return next; }
  bool IsFree() const { return used == 0; }
};

struct SlabItems {
  Slab<Job>* slab;
  WheelItem& operator()(uint32_t index) { return (*slab)[index]; }
};

// CPU time, so that whatever else the machine does is not taken for a stall.
double CpuMicros() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

benchmark::Counter PerItem(int64_t items) {
  return {static_cast<double>(items), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert};
}

void Sizes(benchmark::internal::Benchmark* bench) {
  for (const int64_t size : {10'000, 100'000, 1'000'000, 10'000'000}) bench->Arg(size);
  bench->ArgName("pending");
}

// A wheel with `pending` jobs due within the next day, in random order.
struct Loaded {
  explicit Loaded(size_t pending, int64_t span_ms = 86'400'000) : span(span_ms) {
    for (size_t i = 0; i < pending; ++i) Add();
  }

  int64_t RandomDue() { return now + 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(span)); }

  uint32_t Add() {
    const uint32_t index = slab.Allocate();
    slab[index].due_ms = RandomDue();
    slab[index].seq = seq++;
    benchmark::DoNotOptimize(wheel.Insert(index));
    return index;
  }

  int64_t span;
  int64_t now = kStart;
  uint64_t seq = 1;
  std::mt19937_64 random{42};
  ChunkSource source;
  Slab<Job> slab{source};
  Wheel<SlabItems> wheel{SlabItems{&slab}, FromMs(kStart)};
};

void BM_WheelInsertAndCancel(benchmark::State& state) {
  Loaded loaded(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    const uint32_t index = loaded.Add();
    loaded.wheel.Remove(index);
    loaded.slab.Free(index);
  }
}
BENCHMARK(BM_WheelInsertAndCancel)->Apply(Sizes);

void BM_WheelInsert(benchmark::State& state) {
  constexpr size_t kBatch = 1'000;
  Loaded loaded(static_cast<size_t>(state.range(0)));
  std::vector<uint32_t> added(kBatch);
  for (auto _ : state) {
    const double start_us = CpuMicros();
    for (uint32_t& index : added) index = loaded.Add();
    state.SetIterationTime((CpuMicros() - start_us) / 1e6 / kBatch);
    for (const uint32_t index : added) {
      loaded.wheel.Remove(index);
      loaded.slab.Free(index);
    }
  }
}
BENCHMARK(BM_WheelInsert)->Apply(Sizes)->UseManualTime()->Iterations(500);

void BM_WheelCancelRandom(benchmark::State& state) {
  constexpr size_t kBatch = 1'000;
  const auto pending = static_cast<size_t>(state.range(0));
  Loaded loaded(pending);
  std::vector<uint32_t> chosen(kBatch);
  for (auto _ : state) {
    for (uint32_t& index : chosen) index = static_cast<uint32_t>(1 + loaded.random() % pending);
    size_t removed = 0;
    const double start_us = CpuMicros();
    for (const uint32_t index : chosen) removed += loaded.wheel.Remove(index) ? 1 : 0;
    state.SetIterationTime((CpuMicros() - start_us) / 1e6 / static_cast<double>(removed));
    for (const uint32_t index : chosen) {
      if (loaded.slab[index].bucket == kNoBucket) benchmark::DoNotOptimize(loaded.wheel.Insert(index));
    }
  }
}
BENCHMARK(BM_WheelCancelRandom)->Apply(Sizes)->UseManualTime()->Iterations(500);

void BM_WheelRescheduleRandom(benchmark::State& state) {
  const auto pending = static_cast<size_t>(state.range(0));
  Loaded loaded(pending);
  for (auto _ : state) {
    const auto index = static_cast<uint32_t>(1 + loaded.random() % pending);
    loaded.wheel.Remove(index);
    loaded.slab[index].due_ms = loaded.RandomDue();
    benchmark::DoNotOptimize(loaded.wheel.Insert(index));
  }
}
BENCHMARK(BM_WheelRescheduleRandom)->Apply(Sizes);

// Advances as a shard does until everything has expired.
template <class Timed>
void Drain(Loaded& loaded, Timed&& timed) {
  while (loaded.wheel.size() > 0) {
    loaded.now = ToMs(loaded.wheel.NextWork(FromMs(loaded.now)));
    timed([&] {
      loaded.wheel.Advance(FromMs(loaded.now), 512, [](uint32_t index) { benchmark::DoNotOptimize(index); });
    });
  }
}

// per_item is one expired job with all its moves down; stall_us the longest call of Advance, of 512 units of work.
template <class Make>
void Expire(benchmark::State& state, Make&& make) {
  for (auto _ : state) {
    state.PauseTiming();
    std::unique_ptr<Loaded> loaded = make();
    state.ResumeTiming();
    Drain(*loaded, [](auto&& advance) { advance(); });
    state.PauseTiming();
    loaded.reset();
    state.ResumeTiming();
  }
  double stall_us = 0;
  Drain(*make(), [&](auto&& advance) {
    const double start_us = CpuMicros();
    advance();
    stall_us = std::max(stall_us, CpuMicros() - start_us);
  });
  state.counters["per_item"] = PerItem(state.range(0));
  state.counters["stall_us"] = stall_us;
}

void BM_WheelExpireOverADay(benchmark::State& state) {
  Expire(state, [&] { return std::make_unique<Loaded>(static_cast<size_t>(state.range(0))); });
}
BENCHMARK(BM_WheelExpireOverADay)->Apply(Sizes)->Iterations(2)->Unit(benchmark::kMillisecond);

void BM_WheelExpireInTwoSeconds(benchmark::State& state) {
  Expire(state, [&] { return std::make_unique<Loaded>(static_cast<size_t>(state.range(0)), 2'000); });
}
BENCHMARK(BM_WheelExpireInTwoSeconds)->Apply(Sizes)->Iterations(2)->Unit(benchmark::kMillisecond);

void BM_WheelExpireOneMillisecondOfTomorrow(benchmark::State& state) {
  Expire(state, [&] {
    auto loaded = std::make_unique<Loaded>(0, 1);
    loaded->now = kStart + 86'400'000;
    for (int64_t i = 0; i < state.range(0); ++i) loaded->Add();
    loaded->now = kStart;
    return loaded;
  });
}
BENCHMARK(BM_WheelExpireOneMillisecondOfTomorrow)->Apply(Sizes)->Iterations(2)->Unit(benchmark::kMillisecond);

uint64_t HashOf(uint64_t value) { return Mix64(value, 77); }

void FillTable(IdTable& table, uint32_t entries) {
  for (uint32_t i = 1; i <= entries; ++i) benchmark::DoNotOptimize(table.Insert(HashOf(i), i));
}

void BM_IdTableInsert(benchmark::State& state) {
  const auto entries = static_cast<uint32_t>(state.range(0));
  double bytes = 0;
  double stall_us = 0;
  for (auto _ : state) {
    ChunkSource source;
    IdTable table(source);
    FillTable(table, entries);
    bytes = static_cast<double>(table.held_bytes()) / entries;
  }
  ChunkSource source;
  IdTable table(source);
  for (uint32_t i = 1; i <= entries; ++i) {
    const double start_us = CpuMicros();
    benchmark::DoNotOptimize(table.Insert(HashOf(i), i));
    stall_us = std::max(stall_us, CpuMicros() - start_us);
  }
  state.counters["per_item"] = PerItem(entries);
  state.counters["stall_us"] = stall_us;
  state.counters["bytes_per_entry"] = bytes;
}
BENCHMARK(BM_IdTableInsert)->Apply(Sizes)->Iterations(2)->Unit(benchmark::kMillisecond);

// Each lookup depends on the one before, so that their cache misses do not overlap.
void BM_IdTableFind(benchmark::State& state) {
  const auto entries = static_cast<uint32_t>(state.range(0));
  ChunkSource source;
  IdTable table(source);
  FillTable(table, entries);
  uint64_t at = 1;
  for (auto _ : state) {
    const uint64_t wanted = 1 + HashOf(at) % entries;
    at += table.Find(HashOf(wanted), [&](uint32_t index) { return index == wanted; });
  }
  benchmark::DoNotOptimize(at);
}
BENCHMARK(BM_IdTableFind)->Apply(Sizes);

void BM_IdTableFindMissing(benchmark::State& state) {
  const auto entries = static_cast<uint32_t>(state.range(0));
  ChunkSource source;
  IdTable table(source);
  FillTable(table, entries);
  uint64_t at = 1;
  for (auto _ : state) at += 1 + table.Find(HashOf(entries + at), [&](uint32_t index) { return index == at; });
  benchmark::DoNotOptimize(at);
}
BENCHMARK(BM_IdTableFindMissing)->Apply(Sizes);

void BM_IdTableEraseAndInsert(benchmark::State& state) {
  const auto entries = static_cast<uint32_t>(state.range(0));
  ChunkSource source;
  IdTable table(source);
  FillTable(table, entries);
  std::mt19937_64 random(7);
  for (auto _ : state) {
    const auto index = static_cast<uint32_t>(1 + random() % entries);
    table.Erase(HashOf(index), index);
    benchmark::DoNotOptimize(table.Insert(HashOf(index), index));
  }
}
BENCHMARK(BM_IdTableEraseAndInsert)->Apply(Sizes);

void BM_SlabFreeAndAllocate(benchmark::State& state) {
  const auto live = static_cast<uint32_t>(state.range(0));
  ChunkSource source;
  Slab<Job> slab{source};
  for (uint32_t i = 0; i < live; ++i) benchmark::DoNotOptimize(slab.Allocate());
  std::mt19937_64 random(7);
  for (auto _ : state) {
    slab.Free(static_cast<uint32_t>(1 + random() % live));
    benchmark::DoNotOptimize(slab.Allocate());
  }
}
BENCHMARK(BM_SlabFreeAndAllocate)->Apply(Sizes);

// Random blocks of 100 to 300 bytes are replaced by others and written.
void BM_ArenaFreeAndAllocate(benchmark::State& state) {
  struct Block {
    BlobArena::Handle handle;
    uint32_t size;
  };
  const auto live = static_cast<size_t>(state.range(0));
  ChunkSource source;
  BlobArena arena(source);
  std::mt19937_64 random(7);
  std::vector<Block> blocks(live);
  const auto fill = [&](Block& block) {
    block.size = static_cast<uint32_t>(100 + random() % 200);
    block.handle = arena.Allocate(block.size);
    std::memset(arena.At(block.handle), 1, block.size);
  };
  for (Block& block : blocks) fill(block);
  for (auto _ : state) {
    Block& block = blocks[random() % live];
    arena.Free(block.handle, block.size);
    fill(block);
  }
  state.counters["overhead_per_block"] =
      static_cast<double>(arena.held_bytes() - arena.used_bytes()) / static_cast<double>(live);
}
BENCHMARK(BM_ArenaFreeAndAllocate)->Apply(Sizes);

}  // namespace
}  // namespace tocsin::journal

BENCHMARK_MAIN();
