// Config: the options of a node, typed and within their bounds. LoadConfig (config/load.h) fills it; the defaults are
// only in the table of options (config/options.cc). A plain value that does not change after the start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/time.h"

namespace tocsin {

// The order of each enum, and of LogLevel, is that of the option's choices in options.cc.
enum class Durability : uint8_t { kFsync, kInterval, kOs };
enum class ClockKind : uint8_t { kReal, kVirtual };
enum class StoreKind : uint8_t { kJournal, kRedis };
enum class RedisMode : uint8_t { kSingle, kSentinel, kCluster };
enum class RedisChecks : uint8_t { kRefuse, kWarn };
enum class CoordinationKind : uint8_t { kRedis, kZookeeper };
enum class KafkaSecurity : uint8_t { kPlaintext, kTls, kSaslPlaintext, kSaslTls };
enum class KafkaMechanism : uint8_t { kPlain, kScramSha256, kScramSha512 };
enum class KafkaCompression : uint8_t { kNone, kLz4 };

struct Address {
  std::string host;   // a name or an IP address, without brackets
  uint16_t port = 0;  // 0: any free one

  friend bool operator==(const Address&, const Address&) = default;
};

using Addresses = std::vector<Address>;  // empty only if the default is

struct Config {
  StoreKind store{};
  std::string data_dir;
  bool begin_anew = false;  // --new; not an option, because it is for one start
  Address http_listen;
  Address resp_listen;
  int shards = 0;             // resolved: never 0 once loaded
  uint64_t memory_limit = 0;  // bytes; resolved: never 0 once loaded
  ClockKind clock{};
  LogLevel log_level{};
  std::string node_name;  // resolved: never empty once loaded

  std::string auth_token_file;  // empty: no authentication
  bool auth_allow_unauthenticated = false;

  Durability durability{};
  Millis durability_interval{};
  uint64_t journal_segment_size = 0;  // bytes

  RedisMode redis_mode{};
  Addresses redis_endpoints;
  std::string redis_master;
  std::string redis_username;
  std::string redis_password_file;
  std::string redis_sentinel_username;
  std::string redis_sentinel_password_file;
  bool redis_tls = false;
  std::string redis_tls_ca_file;
  std::string redis_tls_cert_file;
  std::string redis_tls_key_file;
  std::string redis_prefix;
  Millis redis_timeout{};
  RedisChecks redis_checks{};

  CoordinationKind coordination{};
  Millis session_timeout{};
  Addresses zookeeper_hosts;
  std::string zookeeper_path;
  std::string zookeeper_password_file;

  Addresses kafka_brokers;  // none: this server delivers nothing to Kafka
  KafkaSecurity kafka_security{};
  KafkaMechanism kafka_sasl_mechanism{};
  std::string kafka_username;
  std::string kafka_password_file;
  std::string kafka_tls_ca_file;
  std::string kafka_tls_cert_file;
  std::string kafka_tls_key_file;
  KafkaCompression kafka_compression{};
  uint64_t kafka_message_size = 0;  // bytes

  std::string secrets_dir;    // empty: secrets come from the environment only
  std::string webhook_allow;  // networks; empty: none
  std::string webhook_ca_file;

  std::string rabbitmq_url;  // empty: no RabbitMQ; never with a password
  std::string rabbitmq_password_file;
  std::string rabbitmq_ca_file;

  uint64_t limits_payload_size = 0;  // bytes
  uint64_t limits_body_size = 0;     // bytes
  int limits_connections = 0;
  int limits_batch = 0;
  int limits_topics = 0;
  int limits_topics_per_prefix = 0;
};

}  // namespace tocsin
