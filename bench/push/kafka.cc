// librdkafka as the server sets it, with messages like the server's, and nothing else.
#include <array>
#include <memory>

#include <librdkafka/rdkafka.h>

#include "push/push.h"
#include "sinks/kafka/client.h"

namespace tocsin::bench {
namespace {

constexpr size_t kInFlight = 20'000;
constexpr Millis kTimeout{60'000};
constexpr int kAskMs = 10'000;
constexpr int kTopicTries = 100;  // of 100 ms, until the topic is made

struct Counts {
  size_t confirmed = 0;
  size_t failed = 0;
};

void OnDelivery(rd_kafka_t* /*client*/, const rd_kafka_message_t* report, void* counts) {
  ++(report->err == RD_KAFKA_RESP_ERR_NO_ERROR ? static_cast<Counts*>(counts)->confirmed
                                               : static_cast<Counts*>(counts)->failed);
}

class Client {
 public:
  explicit Client(const PushOptions& options) {
    kafka::Options how;
    how.brokers = options.address;
    auto conf = kafka::MakeConf(how, kTimeout);
    if (!conf) Die("{}", conf.error().message);
    rd_kafka_conf_set_opaque(conf->get(), &counts);
    rd_kafka_conf_set_dr_msg_cb(conf->get(), &OnDelivery);
    std::array<char, 512> why{};
    native = rd_kafka_new(RD_KAFKA_PRODUCER, conf->get(), why.data(), why.size());
    if (native == nullptr) Die("no producer: {}", why.data());
    static_cast<void>(conf->release());  // it has become the producer's
    topic = rd_kafka_topic_new(native, options.name.c_str(), nullptr);
  }
  ~Client() {
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(native);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Asking makes the topic if there is none, which takes the broker a moment.
  int Partitions() const {
    for (int i = 0; i < kTopicTries; ++i) {
      const rd_kafka_metadata_t* found = nullptr;
      if (rd_kafka_metadata(native, 0, topic, &found, kAskMs) != RD_KAFKA_RESP_ERR_NO_ERROR) Die("no metadata");
      const int count = found->topics[0].err == RD_KAFKA_RESP_ERR_NO_ERROR ? found->topics[0].partition_cnt : 0;
      rd_kafka_metadata_destroy(found);
      if (count > 0) return count;
      rd_kafka_poll(native, 100);
    }
    Die("the topic was not made");
  }

  size_t Messages(const std::string& name) const {
    size_t messages = 0;
    for (int partition = 0, count = Partitions(); partition < count; ++partition) {
      int64_t low = 0;
      int64_t high = 0;
      const auto error = rd_kafka_query_watermark_offsets(native, name.c_str(), partition, &low, &high, kAskMs);
      if (error != RD_KAFKA_RESP_ERR_NO_ERROR) Die("no offsets: {}", rd_kafka_err2str(error));
      messages += static_cast<size_t>(high - low);
    }
    return messages;
  }

  /// False if its queue is full.
  bool Send(std::string_view payload, const rd_kafka_headers_t* headers) const {
    std::array<rd_kafka_vu_t, 3> fields;
    fields[0].vtype = RD_KAFKA_VTYPE_RKT;
    fields[0].u.rkt = topic;
    fields[1].vtype = RD_KAFKA_VTYPE_VALUE;
    fields[1].u.mem = {.ptr = const_cast<char*>(payload.data()), .size = payload.size()};
    fields[2].vtype = RD_KAFKA_VTYPE_HEADERS;
    fields[2].u.headers = rd_kafka_headers_copy(headers);
    rd_kafka_error_t* error = rd_kafka_produceva(native, fields.data(), fields.size());
    if (error == nullptr) return true;
    rd_kafka_headers_destroy(fields[2].u.headers);
    if (rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR__QUEUE_FULL) Die("refused: {}", rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    return false;
  }

  rd_kafka_t* native = nullptr;
  rd_kafka_topic_t* topic = nullptr;
  Counts counts;
};

}  // namespace

Json LoadKafka(const PushOptions& options) {
  const size_t in_flight = options.in_flight > 0 ? options.in_flight : kInFlight;
  const std::string payload(options.payload, 'x');
  Client client(options);
  client.Partitions();
  rd_kafka_headers_t* const headers = kafka::MakeHeaders("bench", SampleJob(payload));
  PushMeter meter(options);
  size_t sent = 0;
  while (client.counts.confirmed < options.jobs) {
    const bool room = sent < options.jobs && sent - client.counts.confirmed < in_flight;
    if (room && client.Send(payload, headers)) ++sent;
    if (!room || sent % 1000 == 0) {
      rd_kafka_poll(client.native, room ? 0 : 10);
      meter.Check(client.counts.confirmed);
    }
    if (client.counts.failed > 0) Die("{} jobs were not confirmed", client.counts.failed);
  }
  Json result = meter.Result();
  rd_kafka_headers_destroy(headers);
  return result.Count("at_receiver", client.Messages(options.name));
}

}  // namespace tocsin::bench
