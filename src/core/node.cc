#include "core/node.h"

#include <algorithm>

#include "core/shard.h"

namespace tocsin {

Node::Node(size_t shard_count, Clock& the_clock, metrics::Registry& the_metrics, Limits the_limits,
           SinkFactory* the_sinks, PushMemory* the_push_memory)
    : clock(the_clock),
      metrics(the_metrics),
      limits(the_limits),
      sinks(the_sinks),
      push_memory(the_push_memory),
      placement{static_cast<uint32_t>(shard_count)},
      board(shard_count, the_metrics),
      events(the_clock, the_limits.event_streams),
      outages_(shard_count) {}

Node::~Node() = default;

void Node::NoteFailure(const Error& error) {
  if (failed_.exchange(true)) return;
  if (on_failed) on_failed(error);
}

void Node::SetOutage(size_t shard, std::optional<Error> why) {
  const std::lock_guard lock(mutex_);
  outages_[shard].swap(why);
}

std::optional<Error> Node::Outage() const {
  const std::lock_guard lock(mutex_);
  const auto out = std::ranges::find_if(outages_, [](const auto& outage) { return outage.has_value(); });
  return out == outages_.end() ? std::nullopt : *out;
}

Status Node::TakesCalls() const {
  if (failed_.load(std::memory_order_relaxed)) {
    return Fail(Code::kStorageFailed, "the store has failed: the server has to be restarted");
  }
  if (stopping.load(std::memory_order_relaxed)) return Fail(Code::kShuttingDown, "the server is shutting down");
  return {};
}

Status Node::Ready() const {
  TOCSIN_TRY(TakesCalls());
  const std::lock_guard lock(mutex_);
  if (!std::ranges::all_of(outages_, [](const auto& outage) { return outage.has_value(); })) return {};
  return std::unexpected(*outages_.front());
}

}  // namespace tocsin
