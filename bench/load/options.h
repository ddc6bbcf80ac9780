// What the command line of load_bench says.
#pragma once

#include <cstdint>
#include <string>

namespace tocsin::bench {

struct Options {
  std::string driver;
  std::string workload;
  std::string address;  // one or more with commas; empty: the driver's usual one
  std::string mode = "batched";
  std::string ca;            // the authority of a server that speaks TLS; empty: clear text
  std::string folder = ".";  // of limits
  size_t jobs = 100'000;
  size_t rate = 20'000;  // jobs a second of steady
  size_t payload = 128;
  size_t pending = 4'000'000;  // submitted and not yet acknowledged, at most, in life
  double seconds = 10;
  double time_limit = 120;
  // 0: the driver's own (Tuning in protocol.h), or the workload's.
  size_t batch = 0;        // jobs of a submit
  size_t connections = 0;  // that submit
  size_t window = 0;       // requests under way on each of them
  size_t consumers = 0;
  size_t reserve = 0;      // jobs of a reserve, at most
  size_t script_jobs = 0;  // Redis: jobs of one call of the submitting script; 0: the batch
  double ahead = 0;        // drain: seconds from the start to the due time; 0: by the driver's usual speed

  bool single() const { return mode == "single"; }
};

}  // namespace tocsin::bench
