// Client: one producer handle of librdkafka, idempotent and with acks=all, and the topics that were sent to.
//
// Owned by Producer. Threads: Send and Topic on any, while the caller holds the producer (Producer::Hold); Poll and
// Purge on the owner's polling thread. It calls the producer within Poll only. librdkafka's own threads only log.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <librdkafka/rdkafka.h>

#include "base/result.h"
#include "base/time.h"
#include "model/job.h"
#include "sinks/kafka/channel.h"
#include "sinks/kafka/factory.h"

namespace tocsin::kafka {

class Producer;

struct ConfEnd {
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, ConfEnd>;

/// The configuration of a producer of this node: without the callbacks, but with the log.
Result<Conf> MakeConf(const Options& options, Millis timeout);

/// The headers of a message: the job's own, then those of the delivery. Ours come last, because readers take the last
/// of several headers with the same name. The caller destroys them, unless a message takes them.
rd_kafka_headers_t* MakeHeaders(std::string_view topic, const JobView& job);

class Client {
 public:
  /// `timeout`: how long a message may take to be confirmed. `producer` outlives it.
  static Result<std::unique_ptr<Client>> Make(const Options& options, Millis timeout, Producer& producer);
  /// Everything that was sent has been reported; nobody else uses it.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// A topic by its name, which is valid. It lives as long as the client; null if librdkafka refuses it.
  rd_kafka_topic_t* Topic(const std::string& name);

  /// The payload stays valid until the report comes. Any error: the message was not taken, and no report comes.
  rd_kafka_resp_err_t Send(rd_kafka_topic_t* to, std::string_view key, std::string_view topic, const JobView& job,
                           Message& message);

  /// Waits for events, and tells the producer of all that came: of each message that Send took exactly once.
  void Poll(Millis wait) { rd_kafka_queue_poll_callback(queue_, static_cast<int>(wait.count())); }
  /// Thread-safe: ends a Poll, or the next one.
  void Yield() { rd_kafka_queue_yield(queue_); }
  /// Everything that was sent is reported soon, with an error.
  void Purge();
  size_t under_way() const { return under_way_.load(std::memory_order_relaxed); }

  /// Why this client can send nothing any more; empty if it can.
  std::string FatalError() const;
  rd_kafka_t* native() { return native_; }

 private:
  explicit Client(Producer& producer) : producer_(producer) {}

  static void OnDelivery(rd_kafka_t* native, const rd_kafka_message_t* report, void* self);
  static void OnError(rd_kafka_t* native, int error, const char* reason, void* self);

  Producer& producer_;
  rd_kafka_t* native_ = nullptr;
  rd_kafka_queue_t* queue_ = nullptr;
  std::atomic<size_t> under_way_ = 0;

  std::mutex mutex_;  // guards topics_
  std::map<std::string, rd_kafka_topic_t*> topics_;
};

}  // namespace tocsin::kafka
