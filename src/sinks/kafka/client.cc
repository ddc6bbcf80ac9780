#include "sinks/kafka/client.h"

#include <array>
#include <utility>
#include <vector>

#include <syslog.h>

#include "base/log.h"
#include "base/result.h"
#include "sinks/kafka/producer.h"
#include "spi/delivery_headers.h"

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

// librdkafka takes a pointer to writable memory, but does not write to it.
void* Mem(std::string_view bytes) { return const_cast<char*>(bytes.data()); }  // NOLINT(*-const-cast)

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

rd_kafka_headers_t* MakeHeaders(std::string_view topic, const JobView& job) {
  constexpr size_t kOurs = 6;
  rd_kafka_headers_t* headers = rd_kafka_headers_new(job.headers.size() + kOurs);
  const auto add = [headers](std::string_view name, std::string_view value) {
    const char* bytes = value.data() == nullptr ? "" : value.data();  // null is not the same as an empty value
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), bytes,
                        static_cast<ssize_t>(value.size()));
  };
  for (const HeaderView& header : job.headers) add(header.name, header.value);
  delivery_header::ForEach(topic, job, add);
  return headers;
}

Result<std::unique_ptr<Client>> Client::Make(const Options& options, Millis timeout, Producer& producer) {
  TOCSIN_ASSIGN(Conf conf, MakeConf(options, timeout));
  std::unique_ptr<Client> client(new Client(producer));
  rd_kafka_conf_set_opaque(conf.get(), client.get());
  rd_kafka_conf_set_dr_msg_cb(conf.get(), &Client::OnDelivery);
  rd_kafka_conf_set_error_cb(conf.get(), &Client::OnError);
  std::array<char, 512> why{};
  client->native_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), why.data(), why.size());
  if (client->native_ == nullptr) return Fail(Code::kInvalidArgument, "Kafka's producer: {}", why.data());
  static_cast<void>(conf.release());  // the producer owns it now
  client->queue_ = rd_kafka_queue_get_main(client->native_);
  return client;
}

Client::~Client() {
  if (native_ == nullptr) return;
  TOCSIN_CHECK(under_way() == 0);
  for (const auto& [name, topic] : topics_) rd_kafka_topic_destroy(topic);
  rd_kafka_queue_destroy(queue_);
  rd_kafka_destroy(native_);
}

rd_kafka_topic_t* Client::Topic(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto [at, added] = topics_.try_emplace(name, nullptr);
  if (added) at->second = rd_kafka_topic_new(native_, name.c_str(), nullptr);
  if (at->second != nullptr) return at->second;
  topics_.erase(at);
  return nullptr;
}

rd_kafka_resp_err_t Client::Send(rd_kafka_topic_t* to, std::string_view key, std::string_view topic, const JobView& job,
                                 Message& message) {
  // A null value would be a tombstone, so a job without a payload has an empty one. Without a key the key is null.
  const std::string_view payload = job.payload.data() == nullptr ? std::string_view("") : job.payload;
  rd_kafka_headers_t* headers = MakeHeaders(topic, job);
  const rd_kafka_vu_t fields[] = {
      {.vtype = RD_KAFKA_VTYPE_RKT, .u = {.rkt = to}},
      {.vtype = RD_KAFKA_VTYPE_VALUE, .u = {.mem = {.ptr = Mem(payload), .size = payload.size()}}},
      {.vtype = RD_KAFKA_VTYPE_KEY, .u = {.mem = {.ptr = key.empty() ? nullptr : Mem(key), .size = key.size()}}},
      {.vtype = RD_KAFKA_VTYPE_HEADERS, .u = {.headers = headers}},
      {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u = {.ptr = &message}},
  };
  message.batch->Hold();  // before the report can come
  under_way_.fetch_add(1, std::memory_order_relaxed);
  rd_kafka_error_t* error = rd_kafka_produceva(native_, fields, std::size(fields));
  if (error == nullptr) return RD_KAFKA_RESP_ERR_NO_ERROR;
  const rd_kafka_resp_err_t code = rd_kafka_error_code(error);
  rd_kafka_error_destroy(error);
  rd_kafka_headers_destroy(headers);
  under_way_.fetch_sub(1, std::memory_order_relaxed);
  message.batch->Release();
  return code;
}

void Client::Purge() {
  rd_kafka_purge(native_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

std::string Client::FatalError() const {
  std::array<char, 512> why{};
  const rd_kafka_resp_err_t error = rd_kafka_fatal_error(native_, why.data(), why.size());
  return error == RD_KAFKA_RESP_ERR_NO_ERROR ? "" : fmt::format("{}: {}", rd_kafka_err2str(error), why.data());
}

void Client::OnDelivery(rd_kafka_t* /*native*/, const rd_kafka_message_t* report, void* self) {
  auto& client = *static_cast<Client*>(self);
  client.under_way_.fetch_sub(1, std::memory_order_relaxed);
  client.producer_.OnReport(*static_cast<Message*>(report->_private), *report);
}

void Client::OnError(rd_kafka_t* /*native*/, int error, const char* reason, void* self) {
  LogDebug("kafka: {}", reason);  // librdkafka logs what is worth a warning
  // "All brokers are down" says less than the errors of each broker that came before it.
  if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) return;
  static_cast<Client*>(self)->producer_.OnClientError(reason);
}

}  // namespace tocsin::kafka
