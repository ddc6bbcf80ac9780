// Options: how this node reaches RabbitMQ. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "model/owners.h"

namespace tocsin::rabbitmq {

struct Options {
  std::string host = "127.0.0.1";
  uint16_t port = 5672;
  bool tls = false;     // and its certificate has to be the host's
  std::string ca_file;  // with TLS; empty: the system's
  std::string vhost = "/";
  // RabbitMQ's own defaults, which it accepts only from loopback.
  std::string username = "guest";
  std::string password = "guest";
  std::string connection_name = "tocsin";  // what RabbitMQ's lists of connections show
  Millis connect_timeout{5'000};           // from the lookup of the name to an open connection
  Millis heartbeat{10'000};                // whole seconds; the connection is lost after two without a frame
  Millis backoff_min{100};                 // between two tries, of a connection and of a channel
  Millis backoff_max{5'000};
  uint16_t channels_max = 2047;  // of the connection; RabbitMQ's own default. More topics take turns.

  Owners owners;  // of exchanges and queues

  /// "RabbitMQ at host:port", for messages.
  std::string Where() const;
};

/// amqp[s]://user@host:port/vhost; user, port and vhost may be missing. The error names the option, and holds no part
/// of the text, which may contain a password.
Result<Options> ParseUrl(std::string_view url);

}  // namespace tocsin::rabbitmq
