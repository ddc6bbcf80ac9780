// SlowCrowd: many connections that each do next to nothing, for a long time: a third sends a header byte by byte, a
// third a body, a third reads a long answer so. On a thread of its own, which spreads their bytes evenly over time.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "connection.h"

namespace tocsin::bench {

class SlowCrowd {
 public:
  /// All are connected, and have begun, when this returns. `interval`: between two bytes of one connection.
  SlowCrowd(const Endpoint& endpoint, size_t count, Nanos interval);
  ~SlowCrowd();
  SlowCrowd(const SlowCrowd&) = delete;
  SlowCrowd& operator=(const SlowCrowd&) = delete;

  /// Stores the job that the slow readers ask for.
  static void Prepare(const Endpoint& endpoint);
  /// Connections that the server gave up and that were opened again.
  size_t reopened() const { return reopened_.load(std::memory_order_relaxed); }

 private:
  enum class Kind { kHeader, kBody, kReader };
  struct Client {
    Kind kind = Kind::kHeader;
    int fd = -1;
  };

  void Open(Client& client) const;
  /// One more byte; false if the server has closed.
  static bool Trickle(const Client& client);
  void Run(Nanos interval);

  const Endpoint endpoint_;
  std::vector<Client> clients_;
  std::atomic<size_t> reopened_ = 0;
  std::jthread thread_;
};

}  // namespace tocsin::bench
