#include "sinks/kafka/client_conf.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <syslog.h>

#include "base/log.h"

namespace tocsin::kafka {
namespace {

using Properties = std::vector<std::pair<const char*, std::string>>;

// Room for what all topics together have under way; while it is full, jobs wait in their sinks. Each topic's own
// in_flight bounds memory: this limit is large so that topics whose partitions are down do not take the room of others.
constexpr const char* kQueuedMessages = "10000000";
constexpr const char* kQueuedKilobytes = "16777216";

void AddSecurity(const Options& options, Properties& properties) {
  const bool sasl = !options.sasl_mechanism.empty();
  properties.emplace_back("security.protocol",
                          fmt::format("{}{}", sasl ? "sasl_" : "", options.tls ? "ssl" : "plaintext"));
  if (options.tls) {
    properties.emplace_back("ssl.endpoint.identification.algorithm", "https");  // the certificate is of that host
    if (!options.ca_file.empty()) properties.emplace_back("ssl.ca.location", options.ca_file);
    if (!options.cert_file.empty()) {
      properties.emplace_back("ssl.certificate.location", options.cert_file);
      properties.emplace_back("ssl.key.location", options.key_file);
    }
  }
  if (sasl) {
    properties.emplace_back("sasl.mechanisms", options.sasl_mechanism);
    properties.emplace_back("sasl.username", options.username);
    properties.emplace_back("sasl.password", options.password);
  }
}

Properties PropertiesOf(const Options& options, Millis timeout) {
  const std::string size = std::to_string(options.message_size);
  Properties properties = {
      {"bootstrap.servers", options.brokers},
      {"client.id", "tocsin"},
      {"enable.idempotence", "true"},  // retries of librdkafka neither repeat a message nor change the order
      {"acks", "all"},
      {"message.timeout.ms", std::to_string(timeout.count())},
      {"linger.ms", "3"},
      {"batch.num.messages", "100000"},
      {"batch.size", size},
      {"message.max.bytes", size},
      {"compression.codec", options.compression},
      {"partitioner", "murmur2_random"},  // as Kafka's own clients choose it
      {"queue.buffering.max.messages", kQueuedMessages},
      {"queue.buffering.max.kbytes", kQueuedKilobytes},
      {"reconnect.backoff.max.ms", "2000"},  // so that we soon use a broker that is back
      {"socket.keepalive.enable", "true"},
      {"socket.nagle.disable", "true"},
      {"log.connection.close", "false"},  // brokers close idle connections: not worth a line
  };
  AddSecurity(options, properties);
  return properties;
}

LogLevel LevelOf(int syslog_level) {
  if (syslog_level <= LOG_CRIT) return LogLevel::kError;
  if (syslog_level <= LOG_WARNING) return LogLevel::kWarn;  // LOG_ERR too: librdkafka retries what failed
  return syslog_level <= LOG_INFO ? LogLevel::kInfo : LogLevel::kDebug;
}

void WriteLine(const rd_kafka_t* /*native*/, int level, const char* facility, const char* text) {
  Log(LevelOf(level), "kafka: {}: {}", facility, text);
}

}  // namespace

Result<Conf> MakeConf(const Options& options, Millis timeout) {
  Conf conf(rd_kafka_conf_new());
  std::array<char, 512> why{};
  for (const auto& [name, value] : PropertiesOf(options, timeout)) {
    if (rd_kafka_conf_set(conf.get(), name, value.c_str(), why.data(), why.size()) == RD_KAFKA_CONF_OK) continue;
    // librdkafka's message may hold the value, which may be the password.
    const std::string_view shown = std::string_view(name) == "sasl.password" ? "it cannot be used" : why.data();
    return Fail(Code::kInvalidArgument, "Kafka's setting {}: {}", name, shown);
  }
  rd_kafka_conf_set_log_cb(conf.get(), &WriteLine);
  return conf;
}

}  // namespace tocsin::kafka
