// Config: what a node was told, typed and within its bounds. LoadConfig (config/load.h) fills it; the defaults are in
// the one table of options (config/options.cc) and nowhere else. A plain value, not changed after the start.
#pragma once

#include <cstdint>
#include <string>

#include "base/log.h"
#include "base/time.h"

namespace tocsin {

// The order of each enum, and of LogLevel, is that of the option's choices in options.cc.
enum class Durability : uint8_t { kFsync, kInterval, kOs };
enum class ClockKind : uint8_t { kReal, kVirtual };

struct Address {
  std::string host;   // a name or an IP address, without brackets
  uint16_t port = 0;  // 0: any free one

  friend bool operator==(const Address&, const Address&) = default;
};

struct Config {
  std::string data_dir;
  Address http_listen;
  Address resp_listen;
  int shards = 0;             // resolved: never 0 once loaded
  uint64_t memory_limit = 0;  // bytes; resolved: never 0 once loaded
  ClockKind clock{};
  LogLevel log_level{};

  std::string auth_token_file;  // empty: no authentication
  bool auth_allow_unauthenticated = false;

  Durability durability{};
  Millis durability_interval{};
  uint64_t journal_segment_size = 0;  // bytes

  uint64_t limits_payload_size = 0;  // bytes
  uint64_t limits_body_size = 0;     // bytes
  int limits_connections = 0;
  int limits_batch = 0;
};

}  // namespace tocsin
