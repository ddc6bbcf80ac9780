#include "sinks/kafka/client.h"

#include <array>
#include <utility>

#include "base/result.h"
#include "base/log.h"
#include "sinks/kafka/client_conf.h"
#include "sinks/kafka/headers.h"

namespace tocsin::kafka {
namespace {

// librdkafka takes a pointer to writable memory, but does not write to it.
void* Mem(std::string_view bytes) { return const_cast<char*>(bytes.data()); }  // NOLINT(*-const-cast)

}  // namespace

Result<std::unique_ptr<Client>> Client::Make(const Options& options, Millis timeout, Events& events) {
  Result<Conf> conf = MakeConf(options, timeout);
  if (!conf) return std::unexpected(std::move(conf).error());
  std::unique_ptr<Client> client(new Client(events));
  rd_kafka_conf_set_opaque(conf->get(), client.get());
  rd_kafka_conf_set_dr_msg_cb(conf->get(), &Client::OnDelivery);
  rd_kafka_conf_set_error_cb(conf->get(), &Client::OnError);
  std::array<char, 512> why{};
  client->native_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf->get(), why.data(), why.size());
  if (client->native_ == nullptr) return Fail(Code::kInvalidArgument, "Kafka's producer: {}", why.data());
  static_cast<void>(conf->release());  // the producer owns it now
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
  std::array<rd_kafka_vu_t, 5> fields;
  fields[0].vtype = RD_KAFKA_VTYPE_RKT;
  fields[0].u.rkt = to;
  fields[1].vtype = RD_KAFKA_VTYPE_VALUE;
  fields[1].u.mem = {.ptr = Mem(payload), .size = payload.size()};
  fields[2].vtype = RD_KAFKA_VTYPE_KEY;
  fields[2].u.mem = {.ptr = key.empty() ? nullptr : Mem(key), .size = key.size()};
  fields[3].vtype = RD_KAFKA_VTYPE_HEADERS;
  fields[3].u.headers = headers;
  fields[4].vtype = RD_KAFKA_VTYPE_OPAQUE;
  fields[4].u.ptr = &message;

  message.batch->Hold();  // before the report can come
  under_way_.fetch_add(1, std::memory_order_relaxed);
  rd_kafka_error_t* error = rd_kafka_produceva(native_, fields.data(), fields.size());
  if (error == nullptr) return RD_KAFKA_RESP_ERR_NO_ERROR;
  const rd_kafka_resp_err_t code = rd_kafka_error_code(error);
  rd_kafka_error_destroy(error);
  rd_kafka_headers_destroy(headers);
  under_way_.fetch_sub(1, std::memory_order_relaxed);
  message.batch->Release();
  return code;
}

void Client::Poll(Millis wait) { rd_kafka_queue_poll_callback(queue_, static_cast<int>(wait.count())); }

void Client::Yield() { rd_kafka_queue_yield(queue_); }

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
  client.events_.OnReport(*static_cast<Message*>(report->_private), *report);
}

void Client::OnError(rd_kafka_t* /*native*/, int error, const char* reason, void* self) {
  LogDebug("kafka: {}", reason);  // librdkafka logs what is worth a warning
  // "All brokers are down" says less than the errors of each broker that came before it.
  if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) return;
  static_cast<Client*>(self)->events_.OnClientError(reason);
}

}  // namespace tocsin::kafka
