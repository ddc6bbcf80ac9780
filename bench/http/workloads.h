// The loads, each one run against one server. A figure's target is the promise that it is compared with.
#pragma once

#include <optional>
#include <random>
#include <string>

#include "report.h"
#include "server_process.h"

namespace tocsin::bench {

struct Options {
  std::string workload;
  std::string server;  // the program
  std::string dir;
  std::string url;  // a server that runs already, instead
  std::string json;
  std::string durability = "fsync";
  int shards = 0;  // 0: the server's default
  int repeat = 3;
  size_t payload = 128;
  size_t batch = 100;
  // 0: the workload's own.
  size_t jobs = 0;
  size_t connections = 0;
  size_t rate = 0;
  size_t consumers = 4;
  size_t slow = 1000;
  double seconds = 0;

  size_t Or(size_t Options::* member, size_t otherwise) const { return this->*member != 0 ? this->*member : otherwise; }
  double SecondsOr(double otherwise) const { return seconds > 0 ? seconds : otherwise; }
};

/// The server under load: one that was started for this run, or the one of --url.
struct Subject {
  const Options& options;
  Endpoint endpoint;
  const ServerProcess* process = nullptr;  // null with --url
};

/// Batches of jobs that are due much later, each connection with one request under way.
Figures SubmitBatches(const Subject& subject);
/// One job in a request, over many connections.
Figures SubmitSingles(const Subject& subject);
/// Jobs submitted at a steady rate and consumed when they are due: how late they arrive.
Figures Steady(const Subject& subject);
/// Single submits at a steady rate, with and without a crowd of slow clients.
Figures SlowClients(const Subject& subject);

/// Cores that server and benchmark use between construction and AppendTo.
class CpuMeter {
 public:
  explicit CpuMeter(const Subject& subject);
  /// `calls`: requests that were answered meanwhile; the server's time for each hardly depends on what else the machine
  /// does.
  void AppendTo(Figures& figures, size_t calls) const;

 private:
  const ServerProcess* process_;
  Instant began_ = SteadyClock::now();
  double own_ = OwnCpuSeconds();
  double server_ = 0;
};

/// Requests with `batch` jobs each, of random delays between `least_ms` and `most_ms`, made beforehand.
class SubmitRequests {
 public:
  SubmitRequests(const Options& options, size_t batch, int64_t least_ms, int64_t most_ms);
  std::string_view Next();

 private:
  std::vector<std::string> requests_;
  size_t next_ = 0;
};

/// Dies unless all `jobs` of the request were accepted.
void CheckSubmitted(const Answer& answer, size_t jobs);
size_t CountOf(std::string_view text, std::string_view what);

}  // namespace tocsin::bench
