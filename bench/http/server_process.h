// ServerProcess: the tocsind that a benchmark starts on an empty folder and a free port, and stops and clears away
// again. It dies with the benchmark.
#pragma once

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "connection.h"

namespace tocsin::bench {

class ServerProcess {
 public:
  /// Ready to serve when this returns.
  ServerProcess(const std::string& program, std::filesystem::path folder, const std::vector<std::string>& flags);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const Endpoint& endpoint() const { return endpoint_; }
  /// User and system time so far, in steps of 10 ms.
  double CpuSeconds() const;

 private:
  /// Reads its log until it is ready.
  void AwaitReady();

  const std::filesystem::path folder_;
  pid_t pid_ = 0;
  int log_ = -1;
  std::jthread passes_on_;  // its log, so that it never waits for us
  Endpoint endpoint_;
};

}  // namespace tocsin::bench
