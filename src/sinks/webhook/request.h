// A request of a webhook: the bytes to send, and its jobs with the callbacks that wait for their outcomes. Shared
// between the sink and the writes that send it: an answer may end the request before its last byte is sent.
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
  std::string list;      // the body of a batch
  bool batched = false;  // if not, the body is the payload of its only job
  TimePoint deadline{};
  bool again = false;  // sent a second time: the first connection proved to be dead

  std::string_view body() const { return batched ? std::string_view(list) : items.front().job().payload; }
};

}  // namespace tocsin::webhook
