// Batch: the jobs of one Deliver. It lives until the sink has answered all of them and librdkafka, which reads payloads
// and headers from it, has none in its queues. The sink makes it; whoever releases the last reference destroys it.
//
// Threads: any thread may use `references` and the const members; the rest belongs to the loop of the sink.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "spi/sink.h"

namespace tocsin::kafka {

class Channel;
struct Batch;

/// One job of a batch: what librdkafka hands back with its report.
struct Message {
  Batch* batch = nullptr;
  size_t index = 0;
  bool answered = false;
};

struct Batch {
  Batch(std::shared_ptr<Channel> to, std::shared_ptr<const JobBatch> what, Sink::Answer whom)
      : channel(std::move(to)), jobs(std::move(what)), answer(std::move(whom)), unanswered(jobs->jobs.size()) {
    messages.reserve(unanswered);
    for (size_t i = 0; i < unanswered; ++i) messages.push_back({.batch = this, .index = i});
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void Hold() { references.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  const std::shared_ptr<Channel> channel;
  const std::shared_ptr<const JobBatch> jobs;
  Sink::Answer answer;  // empty once all are answered
  size_t unanswered;
  size_t next = 0;  // the first job that was not handed to librdkafka yet
  std::vector<Message> messages;
  std::atomic<size_t> references = 1;  // one for the sink, and one for each message that librdkafka has

 private:
  ~Batch() = default;
};

/// What became of one message. Takes over the reference that librdkafka had, and releases it when it is destroyed.
class Report {
 public:
  Report(Message* message, Delivered what) : delivered(std::move(what)), message_(message) {}
  ~Report() {
    if (message_ != nullptr) message_->batch->Release();
  }
  Report(Report&& other) noexcept
      : delivered(std::move(other.delivered)), message_(std::exchange(other.message_, nullptr)) {}
  Report& operator=(Report&& other) noexcept {
    std::swap(delivered, other.delivered);
    std::swap(message_, other.message_);
    return *this;
  }

  Message& message() const { return *message_; }

  Delivered delivered;

 private:
  Message* message_;
};

}  // namespace tocsin::kafka
