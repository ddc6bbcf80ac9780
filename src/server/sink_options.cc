#include "server/sink_options.h"

#include <utility>

#include "server/password_file.h"
#include "server/redis_options.h"

namespace tocsin {
namespace {

using Security = KafkaOptions::Security;
using Mechanism = KafkaOptions::Mechanism;
using Compression = KafkaOptions::Compression;

static_assert(static_cast<int>(Security::kSaslTls) == static_cast<int>(KafkaSecurity::kSaslTls));
static_assert(static_cast<int>(Mechanism::kScramSha512) == static_cast<int>(KafkaMechanism::kScramSha512));
static_assert(static_cast<int>(Compression::kLz4) == static_cast<int>(KafkaCompression::kLz4));

}  // namespace

Result<KafkaOptions> KafkaOptionsOf(const Config& config) {
  KafkaOptions options;
  if (config.kafka_brokers.empty()) return options;
  options.brokers = AddressesText(config.kafka_brokers);
  options.security = static_cast<Security>(config.kafka_security);
  options.mechanism = static_cast<Mechanism>(config.kafka_sasl_mechanism);
  options.username = config.kafka_username;
  auto password = PasswordOf("kafka.password_file", config.kafka_password_file);
  if (!password) return std::unexpected(std::move(password).error());
  options.password = *std::move(password);
  options.ca_file = config.kafka_tls_ca_file;
  options.cert_file = config.kafka_tls_cert_file;
  options.key_file = config.kafka_tls_key_file;
  options.compression = static_cast<Compression>(config.kafka_compression);
  options.message_size = config.kafka_message_size;
  return options;
}

Result<rabbitmq::Options> RabbitmqOptionsOf(const Config& config) {
  auto options = rabbitmq::ParseUrl(config.rabbitmq_url);
  if (!options) return options;
  auto password = PasswordOf("rabbitmq.password_file", config.rabbitmq_password_file);
  if (!password) return std::unexpected(std::move(password).error());
  if (!config.rabbitmq_password_file.empty()) options->password = *std::move(password);
  options->ca_file = config.rabbitmq_ca_file;
  options->connection_name = fmt::format("tocsin {}", config.node_name);
  return options;
}

}  // namespace tocsin
