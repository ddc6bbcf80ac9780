// What the log says about the life of a server: start, ready, stopping, stopped; each is one event with its figures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "config/config.h"

namespace tocsin {

/// Before the store is opened, which may take long.
void LogStart(const Config& config);

struct ReadyFacts {
  std::string http;  // host:port
  std::string resp;
  std::string_view tls;                    // the doors that speak it; empty: none
  std::optional<uint64_t> jobs_recovered;  // nothing: the store outlives the server
  Millis took{0};                          // since the start
};
/// The server serves. At every level except off: it tells programs which ports were taken.
void LogReady(const ReadyFacts& facts);

void LogStopping(int signal, size_t connections);

struct JobCounts {
  uint64_t scheduled = 0;
  uint64_t leased = 0;
  uint64_t dead = 0;
};
/// `jobs`: that the store keeps; nothing if it outlives the server. `clean`: every call was answered, and all is
/// stored.
void LogStopped(Millis took, const std::optional<JobCounts>& jobs, bool clean);

}  // namespace tocsin
