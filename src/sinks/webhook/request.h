// A request of a webhook: the bytes to send, and the jobs in it with those who wait for their outcomes. Shared between
// the sink and the writes that send it: an answer may come, and end the request, before its last byte was sent.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "spi/sink.h"

namespace tocsin::webhook {

using TimePoint = std::chrono::steady_clock::time_point;

/// One call of Sink::Deliver.
struct Handover {
  std::shared_ptr<const JobBatch> batch;
  Sink::Answer answer;
};

struct Item {
  std::shared_ptr<Handover> handover;
  size_t index = 0;

  const JobView& job() const { return handover->batch->jobs[index]; }
};

struct Request {
  std::vector<Item> items;
  std::string head;
  std::string list;      // the body, where it is a batch
  bool batched = false;  // otherwise the body is the one job's payload
  TimePoint deadline{};
  bool again = false;  // it was sent before, on a connection that proved to be dead

  std::string_view body() const { return batched ? std::string_view(list) : items.front().job().payload; }
};

}  // namespace tocsin::webhook
