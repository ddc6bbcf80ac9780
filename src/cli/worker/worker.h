// Worker: runs a command for each due job of a topic. Each of its threads does one job at a time, by itself: reserve,
// run, extend the lease while it runs, ack or nack; so a job is acked only after its command has ended with 0.
//
// Made and run by the main thread, which takes the signals and writes to stderr. The first signal ends the taking of
// jobs, the second kills the running commands and aborts the calls under way, the third aborts the last calls. No
// thread that holds a lease waits for our output.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/process/descriptor.h"
#include "cli/process/stop_signal.h"
#include "cli/worker/stderr_queue.h"

namespace tocsin::cli {

struct WorkerOptions {
  std::string topic;
  std::vector<std::string> words;  // the command
  size_t concurrency = 1;
  Millis lease{};
  Millis wait{};                   // of one reserve
  std::optional<Millis> retry_in;  // of a nack; without it, the topic's back-off
  std::optional<int64_t> max_jobs;
};

/// What became of the jobs.
struct WorkerFigures {
  int64_t acked = 0;
  int64_t nacked = 0;     // or dead
  int64_t unsettled = 0;  // the lease was over, or an answer was lost
};

class Worker {
 public:
  Worker(Context& context, WorkerOptions options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Until a signal, an error that is not temporary, or `max_jobs`.
  Result<WorkerFigures> Run(StopSignal& signal);

 private:
  class Runner;

  // For the runners, from their threads.
  bool TakeTicket();
  void Stop();
  void GiveUp(const Error& error);
  template <class... Args>
  void Report(fmt::format_string<Args...> format, Args&&... args) {
    stderr_.Add(fmt::format("tocsin: {}\n", fmt::format(format, std::forward<Args>(args)...)));
  }
  void Unreachable(const Error& error);
  void Reachable();
  void Finish(const json::object& job, const std::string& outcome, bool done, const std::string& reason, Millis took);
  void PrintJson(const json::object& line);

  // For the main thread.
  void OnSignal();

  Context& context_;
  const WorkerOptions options_;
  Descriptor stopped_;  // readable from the first signal on
  Descriptor killed_;   // readable from the second signal on
  Descriptor idle_;     // readable when a runner has ended
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> killing_ = false;
  StderrQueue stderr_;
  std::atomic<int64_t> tickets_;  // how many more jobs may be taken
  std::vector<std::unique_ptr<Runner>> runners_;

  std::mutex out_mutex_;  // the output, which may block: taken by a thread that has no lease, and holds no other mutex
  std::mutex mutex_;      // what follows
  WorkerFigures figures_;
  bool unreachable_ = false;
  std::optional<Error> error_;
};

}  // namespace tocsin::cli
