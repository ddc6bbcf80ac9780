// KafkaOptions: how this node reaches Kafka. A plain value, filled by the composition root; the password is in memory
// alone, and nothing here writes it anywhere.
#pragma once

#include <cstdint>
#include <string>

namespace tocsin {

struct KafkaOptions {
  // In the order of the choices in config/options.cc.
  enum class Security : uint8_t { kPlaintext, kTls, kSaslPlaintext, kSaslTls };
  enum class Mechanism : uint8_t { kPlain, kScramSha256, kScramSha512 };
  enum class Compression : uint8_t { kNone, kLz4 };

  std::string brokers;  // host:port,host:port,...; they name the others. Empty: this server knows no Kafka
  Security security = Security::kPlaintext;
  Mechanism mechanism = Mechanism::kPlain;  // of the two with SASL
  std::string username;
  std::string password;
  std::string ca_file;    // of the two with TLS; empty: the system's
  std::string cert_file;  // this node's own, where Kafka asks for one; with key_file
  std::string key_file;
  Compression compression = Compression::kNone;
  uint64_t message_size = 1 << 20;  // bytes; of a message, and of a batch of several
};

}  // namespace tocsin
