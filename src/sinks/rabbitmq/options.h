// Where RabbitMQ is, and who we are there. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace tocsin::rabbitmq {

struct Options {
  std::string host = "127.0.0.1";
  uint16_t port = 5672;
  bool tls = false;     // its certificate has to be the host's
  std::string ca_file;  // of TLS; empty: the system's authorities
  std::string vhost = "/";
  // RabbitMQ's own defaults, which it takes from loopback alone.
  std::string username = "guest";
  std::string password = "guest";
  std::string connection_name = "tocsin";  // what RabbitMQ's lists of connections show
  Millis connect_timeout{5'000};           // from the name's look-up to an open connection
  Millis heartbeat{10'000};                // whole seconds; two of them without a sign of life, and it counts as lost
  Millis backoff_min{100};                 // between two tries to connect; doubled each time, with jitter
  Millis backoff_max{5'000};

  /// "RabbitMQ at host:port", for messages.
  std::string Where() const;
};

/// amqp[s]://user@host:port/vhost; user, port and vhost may be missing. The error names the option, and holds nothing
/// of the text, in which there may be a password.
Result<Options> ParseUrl(std::string_view url);

}  // namespace tocsin::rabbitmq
