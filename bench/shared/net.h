// Sockets of the load generators: one thread, one Poller, non-blocking connections, no Nagle. Trouble ends the program:
// a benchmark that lost a connection has nothing to report.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::bench {

using SteadyClock = std::chrono::steady_clock;
using Instant = SteadyClock::time_point;
using Nanos = std::chrono::nanoseconds;

/// Ends the program with `message` on stderr.
[[noreturn]] void Die(std::string_view message);

template <class... T>
[[noreturn]] void Die(fmt::format_string<T...> format, T&&... arguments) {
  Die(std::string_view(fmt::format(format, std::forward<T>(arguments)...)));
}

struct Endpoint {
  std::string host;
  uint16_t port = 0;

  /// 127.0.0.1:7420
  static Endpoint Parse(std::string_view address);
};

/// A connected, non-blocking socket without Nagle's delay. `receive_bytes`: of its buffer, 0 for the kernel's choice.
int Connect(const Endpoint& endpoint, int receive_bytes = 0);

class Poller {
 public:
  class Client {
   public:
    virtual ~Client() = default;
    virtual void OnReady() = 0;
  };

  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  void Add(int fd, Client& client);
  void WantWrite(int fd, Client& client, bool on);
  /// Waits for something to do, at most until `until`, and does it.
  void Turn(Instant until);

 private:
  const int fd_;
};

}  // namespace tocsin::bench
