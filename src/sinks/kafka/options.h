// Options: how this node reaches Kafka. A plain value, filled by the composition root; the password is kept in memory
// only, and nothing here writes it anywhere.
#pragma once

#include <cstdint>
#include <string>

namespace tocsin::kafka {

struct Options {
  std::string brokers;    // host:port,host:port,...: some of them; they name the others
  bool tls = false;       // and each broker's certificate has to be its host's
  std::string ca_file;    // with TLS; empty: the system's
  std::string cert_file;  // this node's own, if Kafka asks for one; with key_file
  std::string key_file;
  std::string sasl_mechanism;  // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; empty: no login
  std::string username;        // with a mechanism
  std::string password;
  std::string compression = "none";  // or lz4
  uint64_t message_size = 1 << 20;   // bytes; of a message, and of a batch of several
};

}  // namespace tocsin::kafka
