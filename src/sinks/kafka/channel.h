// Channel: carries reports from the thread that polls a producer to the loop of one sink. It outlives the sink while
// librdkafka still has messages of it.
//
// Invariants: after Detach nothing more is posted to the loop, and what was posted before does nothing, so the loop may
// end. One task is posted for each round of reports.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/loop.h"
#include "sinks/kafka/batch.h"

namespace tocsin::kafka {

/// The sink; called on its loop.
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

  /// Polling thread: adds a report to the present round. True for the first of a round.
  bool Add(Report report) {
    round_.push_back(std::move(report));
    return round_.size() == 1;
  }
  std::vector<Report>& round() { return round_; }
  /// Ends the round: posts its reports.
  void Flush();

  /// Any thread: OnWake runs soon.
  void Wake();

  /// The loop's thread.
  void Detach();

 private:
  void Post(Task task);

  std::mutex mutex_;  // guards loop_
  Loop* loop_;
  Listener* listener_;  // used on the loop; null once detached
  std::vector<Report> round_;
};

}  // namespace tocsin::kafka
