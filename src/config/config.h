// Config: the options of a node, typed and within their bounds. LoadConfig (config/load.h) fills it; the defaults are
// only in the table of options (config/options.cc). A plain value that does not change after the start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/log_event.h"
#include "base/time.h"

namespace tocsin {

// The order of each enum, and of LogLevel and LogFormat, is that of the option's choices in options.cc.
enum class DoorTls : uint8_t { kAuto, kOff };
enum class TlsClientAuth : uint8_t { kRequired, kOptional };
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
  std::string http_allowed_hosts;  // names with commas between them; empty: none
  int shards = 0;                  // resolved: never 0 once loaded
  uint64_t memory_limit = 0;       // bytes; resolved: never 0 once loaded
  ClockKind clock{};
  std::string clock_start;  // of the virtual clock (config/start_time.h)
  LogLevel log_level{};
  LogFormat log_format{};
  std::string log_audit_file;  // empty: the log
  Millis log_slow_sync{};      // 0: never
  std::string node_name;       // resolved: never empty once loaded

  std::string auth_token_file;  // empty: no authentication
  bool auth_allow_unauthenticated = false;

  std::string tls_certificate;  // empty: the doors speak clear text
  std::string tls_key;
  std::string tls_client_ca;  // empty: clients are not asked for certificates
  TlsClientAuth tls_client_auth{};
  DoorTls http_tls{};
  DoorTls resp_tls{};

  Durability durability{};
  Millis durability_interval{};
  uint64_t journal_segment_size = 0;  // bytes; resolved: never 0 once loaded, if the store is the journal

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
  int redis_groups = 0;
  Millis redis_timeout{};
  int redis_wait_replicas = 0;
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
  std::string push_owners;  // rules of model/owners.h; empty: every topic may use everything

  std::string rabbitmq_url;  // empty: no RabbitMQ; never with a password
  std::string rabbitmq_password_file;
  std::string rabbitmq_ca_file;

  std::string outbox_url;  // empty: no outbox; never with a password
  std::string outbox_password_file;
  std::string outbox_prefix;  // empty: all topics
  Millis outbox_timeout{};
  std::string outbox_tls_ca_file;
  std::string outbox_tls_cert_file;
  std::string outbox_tls_key_file;

  std::string alerts_webhook_url;     // empty: none is posted
  std::string alerts_webhook_secret;  // a secret's name; empty: posts are not signed
  Millis alerts_repeat{};
  Millis alerts_hold{};
  int alerts_due_jobs = 0;  // 0, here and below: never
  Millis alerts_late{};
  Millis alerts_stalled{};
  int alerts_attempts = 0;
  int alerts_push_failures = 0;
  int alerts_dead_jobs = 0;
  int alerts_future_jobs = 0;
  Millis alerts_node_silent{};
  int alerts_nearly_full = 0;  // per cent

  uint64_t limits_payload_size = 0;  // bytes
  uint64_t limits_body_size = 0;     // bytes
  int limits_connections = 0;
  int limits_batch = 0;
  int limits_topics = 0;
  int limits_topics_per_prefix = 0;
  int limits_event_streams = 0;
};

}  // namespace tocsin
