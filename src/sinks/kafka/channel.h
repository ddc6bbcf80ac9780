// Channel: the way from the thread that polls a producer to the loop of one sink. It outlives the sink where librdkafka
// still has messages of it.
//
// Invariants: after Detach nothing is posted to the loop any more, and what was posted before does nothing; the loop
// may end. One task is posted for each round of reports.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/loop.h"
#include "sinks/kafka/batch.h"

namespace tocsin::kafka {

/// What the sink hears, on its loop.
class Listener {
 public:
  virtual void OnReports(std::vector<Report> reports) = 0;
  virtual void OnWake() = 0;

 protected:
  ~Listener() = default;
};

class Channel : public std::enable_shared_from_this<Channel> {
 public:
  Channel(Loop& loop, Listener& listener) : loop_(&loop), listener_(&listener) {}

  /// The polling thread's: reports of the present round. True for the first of a round.
  bool Add(Report report) {
    round_.push_back(std::move(report));
    return round_.size() == 1;
  }
  std::vector<Report>& round() { return round_; }
  /// Ends the round: posts what it brought.
  void Flush();

  /// Any thread: OnWake, soon.
  void Wake();

  /// The loop's thread.
  void Detach();

 private:
  void Post(Task task);

  std::mutex mutex_;  // guards loop_
  Loop* loop_;
  Listener* listener_;  // the loop's; null once detached
  std::vector<Report> round_;
};

}  // namespace tocsin::kafka
