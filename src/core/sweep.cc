#include "core/sweep.h"

#include <memory>
#include <utility>

namespace tocsin {
namespace {

constexpr size_t kSweepBatch = 1000;

struct Sweeping {
  std::string topic;
  SweepKind kind;
  std::string cursor;
  size_t swept = 0;
  Done<size_t> done;
};

void SweepNext(Shard& shard, std::shared_ptr<Sweeping> sweeping) {
  const auto take = [&shard, sweeping](Result<Swept> result) {
    shard.Note(result);
    shard.Changed();
    if (!result) return sweeping->done(std::unexpected(std::move(result).error()));
    sweeping->swept += result->changed;
    sweeping->cursor = std::move(result->cursor);
    if (sweeping->cursor.empty()) return sweeping->done(sweeping->swept);
    shard.Send([&shard, sweeping] { SweepNext(shard, sweeping); });
  };
  shard.store().Sweep(sweeping->topic, sweeping->kind, sweeping->cursor, kSweepBatch, shard.Now(), take);
}

}  // namespace

void SweepAll(Shard& shard, const std::string& topic, SweepKind kind, Done<size_t> done) {
  SweepNext(shard, std::make_shared<Sweeping>(topic, kind, std::string(), 0, std::move(done)));
}

}  // namespace tocsin
