// What passes between a sink and the thread that polls its producer: batches of jobs, and reports on their messages.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "spi/sink.h"

namespace tocsin::kafka {

class Channel;
class KafkaSink;
struct Batch;

/// One job of a batch: what librdkafka hands back with its report.
struct Message {
  Batch* batch = nullptr;
  size_t index = 0;
  bool answered = false;
};

/// The jobs of one Deliver. It lives until the sink has answered all of them and librdkafka, which reads payloads and
/// headers from it, has none in its queues. The sink makes it; whoever releases the last reference destroys it.
///
/// Threads: any thread may use `references` and the const members; the rest belongs to the loop of the sink.
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

/// What became of one message. Takes over the reference that librdkafka had.
struct Report {
  struct Release {
    void operator()(Message* sent) const { sent->batch->Release(); }
  };
  std::unique_ptr<Message, Release> message;
  Delivered delivered;
};

/// Carries reports from the thread that polls a producer to the loop of one sink. It outlives the sink while librdkafka
/// still has messages of it.
///
/// Invariants: after Detach nothing more is posted to the loop, and what was posted before does nothing, so the loop
/// may end. One task is posted for each round of reports.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  Channel(Loop& loop, KafkaSink& sink) : loop_(&loop), sink_(&sink) {}

  /// Polling thread: adds a report to the present round. True for the first of a round.
  bool Add(Report report) {
    round_.push_back(std::move(report));
    return round_.size() == 1;
  }
  std::vector<Report>& round() { return round_; }
  /// Ends the round: posts its reports.
  void Flush();

  /// Any thread: the sink's OnWake runs soon.
  void Wake();

  /// The loop's thread.
  void Detach();

 private:
  void Post(Task task);

  std::mutex mutex_;  // guards loop_
  Loop* loop_;
  KafkaSink* sink_;  // used on the loop; null once detached
  std::vector<Report> round_;
};

}  // namespace tocsin::kafka
