#include "sinks/kafka/factory.h"

#include <utility>

#include "sinks/kafka/producer.h"
#include "sinks/kafka/sink.h"
#include "sinks/kafka/verdict.h"

namespace tocsin::kafka {
namespace {

/// What the topic asks for, rounded up to the next step: each step in use needs a producer, which has several threads.
Millis TimeoutOf(const Topic& topic) {
  constexpr int64_t kSteps[] = {10, 15, 20, 30, 40, 50, 60, 80};
  const auto asked = static_cast<int64_t>(topic.delivery.Number("timeout_ms"));
  for (int64_t scale = 10;; scale *= 10) {
    for (const int64_t step : kSteps) {
      if (step * scale >= asked) return Millis(step * scale);
    }
  }
}

}  // namespace

Result<std::unique_ptr<Factory>> Factory::Make(Options options, const Clock& clock) {
  std::unique_ptr<Factory> factory(new Factory(std::move(options), clock));
  // Make and drop a producer, so that a mistake in the options is an error at the start.
  constexpr Millis kAny{5'000};
  TOCSIN_TRY(Producer::Make(factory->options_, kAny, clock));
  return factory;
}

Factory::~Factory() {
  for (const auto& [timeout, producer] : producers_) producer->Stop();  // all at once; their destructors wait
}

Status Factory::Check(const Topic& topic) const {
  TOCSIN_ASSIGN(const Addressing addressing, Addressing::Parse(topic));
  // What a job has may make the name invalid: the sink checks that. The rest can be checked now.
  const bool depends = addressing.kafka_topic.DependsOnJob();
  std::string name = depends ? "x" : "";
  addressing.kafka_topic.Append(name, topic.name, JobView());
  const Status valid = CheckTopicName(name, depends ? topic.delivery.Text("kafka_topic") : name);
  if (valid && depends) return {};
  if (valid) return options_.owners.Check(Owned::kKafka, name, topic.name, "delivery.kafka_topic");
  return FailField(Code::kInvalidArgument, "delivery.kafka_topic", "delivery.kafka_topic: {}", valid.error().message);
}

Result<std::unique_ptr<Sink>> Factory::Open(const Topic& topic, Loop& loop) {
  TOCSIN_TRY(Check(topic));
  TOCSIN_ASSIGN(auto producer, ProducerFor(TimeoutOf(topic)));
  Addressing addressing = Addressing::Parse(topic).value();
  if (addressing.kafka_topic.DependsOnJob() && !options_.owners.empty()) addressing.owners = &options_.owners;
  return std::make_unique<KafkaSink>(std::move(producer), std::move(addressing), loop);
}

Result<std::shared_ptr<Producer>> Factory::ProducerFor(Millis timeout) {
  const std::lock_guard lock(mutex_);
  const auto at = producers_.find(timeout);
  if (at != producers_.end()) return at->second;
  RetireIdle();
  auto made = Producer::Make(options_, timeout, clock_);
  if (made) producers_.emplace(timeout, *made);
  return made;
}

void Factory::RetireIdle() {
  std::erase_if(retired_, [](const auto& producer) { return producer->stopped(); });
  std::erase_if(producers_, [this](const auto& entry) {
    if (entry.second.use_count() > 1) return false;
    entry.second->Stop();
    retired_.push_back(entry.second);
    return true;
  });
}

}  // namespace tocsin::kafka
