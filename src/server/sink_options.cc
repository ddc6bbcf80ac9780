#include "server/sink_options.h"

#include <utility>

#include "config/options.h"
#include "server/password_file.h"

namespace tocsin {

Result<kafka::Options> KafkaOptionsOf(const Config& config) {
  constexpr const char* kMechanisms[] = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"};  // in the order of the enum
  static_assert(static_cast<size_t>(KafkaMechanism::kScramSha512) + 1 == std::size(kMechanisms));
  const KafkaSecurity security = config.kafka_security;
  const bool sasl = security == KafkaSecurity::kSaslPlaintext || security == KafkaSecurity::kSaslTls;
  auto password = PasswordOf("kafka.password_file", config.kafka_password_file);
  if (!password) return std::unexpected(std::move(password).error());
  return kafka::Options{.brokers = ShowOption(*FindOption("kafka.brokers"), config),
                        .tls = security == KafkaSecurity::kTls || security == KafkaSecurity::kSaslTls,
                        .ca_file = config.kafka_tls_ca_file,
                        .cert_file = config.kafka_tls_cert_file,
                        .key_file = config.kafka_tls_key_file,
                        .sasl_mechanism = sasl ? kMechanisms[static_cast<size_t>(config.kafka_sasl_mechanism)] : "",
                        .username = config.kafka_username,
                        .password = *std::move(password),
                        .compression = ShowOption(*FindOption("kafka.compression"), config),
                        .message_size = config.kafka_message_size};
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
