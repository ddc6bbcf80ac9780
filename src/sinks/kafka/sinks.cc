#include "sinks/kafka/sinks.h"

#include <algorithm>
#include <utility>

#include "sinks/kafka/producer.h"
#include "sinks/kafka/sink.h"
#include "sinks/kafka/verdict.h"

namespace tocsin {

namespace {

/// What the topic asks for, or the next of a few longer ones: each needs a producer, which has several threads.
Millis TimeoutOf(const Topic& topic) {
  constexpr int64_t kSteps[] = {10, 15, 20, 30, 40, 50, 60, 80};
  const auto asked = static_cast<int64_t>(topic.delivery.Number("timeout_ms"));
  for (int64_t scale = 10;; scale *= 10) {
    for (const int64_t step : kSteps) {
      if (step * scale >= asked) return Millis(step * scale);
    }
  }
}

/// What a job has may make a name invalid: that is seen with the job. The rest can be seen now.
Status CheckKafkaTopic(const kafka::Addressing& addressing, std::string_view text) {
  std::string name = addressing.kafka_topic.DependsOnJob() ? "x" : "";
  addressing.kafka_topic.Append(name, addressing.topic, JobView());
  const Status valid = kafka::CheckTopicName(name, addressing.kafka_topic.DependsOnJob() ? text : name);
  if (valid) return {};
  return FailField(Code::kInvalidArgument, "delivery.kafka_topic", "delivery.kafka_topic: {}", valid.error().message);
}

}  // namespace

Status CheckKafka(const Topic& topic, const KafkaOptions& options) {
  if (options.brokers.empty()) {
    return FailField(Code::kInvalidArgument, "delivery.sink",
                     "delivery.sink is kafka, but this server knows no Kafka: set kafka.brokers");
  }
  const Result<kafka::Addressing> addressing = kafka::Addressing::Parse(topic);
  if (!addressing) return std::unexpected(addressing.error());
  return CheckKafkaTopic(*addressing, topic.delivery.Text("kafka_topic"));
}

Result<std::unique_ptr<KafkaSinks>> KafkaSinks::Make(KafkaOptions options, const Clock& clock) {
  std::unique_ptr<KafkaSinks> sinks(new KafkaSinks(std::move(options), clock));
  if (sinks->options_.brokers.empty()) return sinks;
  // A mistake is told at the start, not when the first topic wants a producer.
  constexpr Millis kAny{5'000};
  const auto tried = kafka::Producer::Make(sinks->options_, kAny, clock);
  if (!tried) return std::unexpected(tried.error());
  return sinks;
}

KafkaSinks::KafkaSinks(KafkaOptions options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}

KafkaSinks::~KafkaSinks() {
  for (const auto& [timeout, producer] : producers_) producer->Stop();  // all at once; each is waited for below
}

Result<std::unique_ptr<Sink>> KafkaSinks::Open(const Topic& topic, Loop& loop) {
  TOCSIN_TRY(CheckKafka(topic, options_));
  Result<kafka::Addressing> addressing = kafka::Addressing::Parse(topic);
  if (!addressing) return std::unexpected(std::move(addressing).error());
  auto producer = ProducerFor(TimeoutOf(topic));
  if (!producer) return std::unexpected(std::move(producer).error());
  return std::make_unique<kafka::KafkaSink>(std::move(*producer), std::move(*addressing), loop);
}

Result<std::shared_ptr<kafka::Producer>> KafkaSinks::ProducerFor(Millis timeout) {
  const std::lock_guard lock(mutex_);
  const auto at = producers_.find(timeout);
  if (at != producers_.end()) return at->second;
  RetireIdle();
  auto made = kafka::Producer::Make(options_, timeout, clock_);
  if (made) producers_.emplace(timeout, *made);
  return made;
}

void KafkaSinks::RetireIdle() {
  std::erase_if(retired_, [](const auto& producer) { return producer->stopped(); });
  std::erase_if(producers_, [this](const auto& entry) {
    if (entry.second.use_count() > 1) return false;
    entry.second->Stop();
    retired_.push_back(entry.second);
    return true;
  });
}

}  // namespace tocsin
