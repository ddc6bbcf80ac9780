#include "server/options.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "auth/private_file.h"
#include "config/options.h"

namespace tocsin {
namespace {

static_assert(static_cast<int>(redis::Mode::kSingle) == static_cast<int>(RedisMode::kSingle));
static_assert(static_cast<int>(redis::Mode::kSentinel) == static_cast<int>(RedisMode::kSentinel));
static_assert(static_cast<int>(redis::Mode::kCluster) == static_cast<int>(RedisMode::kCluster));

/// The path, if there is a file that can be read, or no path at all.
Result<std::string> ReadableFile(std::string_view key, const std::string& path) {
  if (path.empty() || ::access(path.c_str(), R_OK) == 0) return path;
  return FailField(Code::kInvalidArgument, std::string(key), "{}: cannot read {}: {}", key, path,
                   std::generic_category().message(errno));
}

}  // namespace

Result<std::string> PasswordOf(std::string_view key, const std::string& path) {
  if (path.empty()) return std::string();
  auto line = Prefixed(key, auth::ReadPrivateLine(path));
  if (!line && line.error().field.empty()) line.error().field = key;
  return line;
}

std::string AddressesText(const Addresses& addresses) {
  Config config;
  config.redis_endpoints = addresses;
  return ShowOption(*FindOption("redis.endpoints"), config);
}

Result<redis::Options> RedisOptionsOf(const Config& config) {
  redis::Options options{.mode = static_cast<redis::Mode>(config.redis_mode)};
  for (const Address& address : config.redis_endpoints) options.endpoints.push_back({address.host, address.port});
  options.master = config.redis_master;
  options.username = config.redis_username;
  options.sentinel_username = config.redis_sentinel_username;
  TOCSIN_ASSIGN(options.password, PasswordOf("redis.password_file", config.redis_password_file));
  TOCSIN_ASSIGN(options.sentinel_password,
                PasswordOf("redis.sentinel_password_file", config.redis_sentinel_password_file));
  options.tls = {.on = config.redis_tls,
                 .ca_file = config.redis_tls_ca_file,
                 .cert_file = config.redis_tls_cert_file,
                 .key_file = config.redis_tls_key_file};
  options.command_timeout = config.redis_timeout;
  options.wait_replicas = config.redis_wait_replicas;
  return options;
}

Result<ZookeeperOptions> ZookeeperOptionsOf(const Config& config) {
  TOCSIN_ASSIGN(const std::string secret, PasswordOf("zookeeper.password_file", config.zookeeper_password_file));
  ZookeeperOptions options;
  options.hosts = AddressesText(config.zookeeper_hosts);
  options.path = config.zookeeper_path;
  options.session = config.session_timeout;
  if (secret.empty()) return options;
  const size_t colon = secret.find(':');
  if (colon == 0 || colon == std::string::npos) {
    return FailField(Code::kInvalidArgument, "zookeeper.password_file",
                     "zookeeper.password_file: {} does not hold user:password", config.zookeeper_password_file);
  }
  options.username = secret.substr(0, colon);
  options.password = secret.substr(colon + 1);
  return options;
}

Result<kafka::Options> KafkaOptionsOf(const Config& config) {
  constexpr const char* kMechanisms[] = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"};  // in the order of the enum
  static_assert(static_cast<size_t>(KafkaMechanism::kScramSha512) + 1 == std::size(kMechanisms));
  const KafkaSecurity security = config.kafka_security;
  const bool sasl = security == KafkaSecurity::kSaslPlaintext || security == KafkaSecurity::kSaslTls;
  TOCSIN_ASSIGN(std::string password, PasswordOf("kafka.password_file", config.kafka_password_file));
  return kafka::Options{.brokers = ShowOption(*FindOption("kafka.brokers"), config),
                        .tls = security == KafkaSecurity::kTls || security == KafkaSecurity::kSaslTls,
                        .ca_file = config.kafka_tls_ca_file,
                        .cert_file = config.kafka_tls_cert_file,
                        .key_file = config.kafka_tls_key_file,
                        .sasl_mechanism = sasl ? kMechanisms[static_cast<size_t>(config.kafka_sasl_mechanism)] : "",
                        .username = config.kafka_username,
                        .password = std::move(password),
                        .compression = ShowOption(*FindOption("kafka.compression"), config),
                        .message_size = config.kafka_message_size};
}

Result<rabbitmq::Options> RabbitmqOptionsOf(const Config& config) {
  TOCSIN_ASSIGN(rabbitmq::Options options, rabbitmq::ParseUrl(config.rabbitmq_url));
  if (!config.rabbitmq_password_file.empty()) {
    TOCSIN_ASSIGN(options.password, PasswordOf("rabbitmq.password_file", config.rabbitmq_password_file));
  }
  options.ca_file = config.rabbitmq_ca_file;
  options.connection_name = fmt::format("tocsin {}", config.node_name);
  return options;
}

Result<mysql::Options> OutboxOptionsOf(const Config& config) {
  TOCSIN_ASSIGN(mysql::Options options, mysql::ParseUrl("outbox.url", config.outbox_url));
  TOCSIN_ASSIGN(options.password, PasswordOf("outbox.password_file", config.outbox_password_file));
  options.timeout = config.outbox_timeout;
  // The client's library says only that there is no TLS if it cannot read one of them.
  TOCSIN_ASSIGN(options.ca_file, ReadableFile("outbox.tls_ca_file", config.outbox_tls_ca_file));
  TOCSIN_ASSIGN(options.cert_file, ReadableFile("outbox.tls_cert_file", config.outbox_tls_cert_file));
  TOCSIN_ASSIGN(options.key_file, ReadableFile("outbox.tls_key_file", config.outbox_tls_key_file));
  return options;
}

}  // namespace tocsin
