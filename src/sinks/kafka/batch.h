// Batch: what Deliver was given, as long as the sink has to answer some of it or librdkafka has some of it in its
// queues: it reads payloads and headers from there. Made by the sink; destroyed by whoever lets go of it last.
//
// Threads: `references` and what never changes on any; the rest on the loop of the sink.
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
  size_t next = 0;  // the first that was not tried to be sent yet
  std::vector<Message> messages;
  std::atomic<size_t> references = 1;  // the sink's, and one for each message that librdkafka has

 private:
  ~Batch() = default;
};

/// What became of one message. It holds the batch, on behalf of librdkafka, until it is destroyed.
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
