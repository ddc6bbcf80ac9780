#include "sinks/rabbitmq/sink.h"

#include <utility>

#include "base/result.h"

namespace tocsin::rabbitmq {

RabbitSink::RabbitSink(Publisher& publisher, Loop& loop, Message message, Channel::Settings settings)
    : publisher_(publisher) {
  const auto report = [this, &loop](std::vector<Outcome> outcomes, bool closed) {
    loop.Post([this, outcomes = std::move(outcomes), closed]() mutable { Take(std::move(outcomes), closed); });
  };
  auto channel =
      std::make_unique<Channel>(static_cast<Channel::Owner&>(publisher_), std::move(message), settings, report);
  channel_ = channel.get();
  ++publisher_.sinks_;
  publisher_.loop_.Post(
      [&publisher = publisher_, channel = std::move(channel)]() mutable { publisher.Add(std::move(channel)); });
}

RabbitSink::~RabbitSink() {
  TOCSIN_CHECK(channel_ == nullptr);
  --publisher_.sinks_;
}

void RabbitSink::Deliver(std::shared_ptr<const JobBatch> batch, Answer answer) {
  const uint64_t id = ++last_id_;
  batches_.emplace(id, UnderWay{.answer = std::move(answer), .left = batch->jobs.size()});
  publisher_.loop_.Post([&publisher = publisher_, channel = channel_, id, batch = std::move(batch)]() mutable {
    publisher.Deliver(*channel, id, std::move(batch));
  });
}

void RabbitSink::Close(Task done) {
  done_ = std::move(done);
  publisher_.loop_.Post([&publisher = publisher_, channel = channel_] { publisher.CloseChannel(*channel); });
}

void RabbitSink::Take(std::vector<Outcome> outcomes, bool closed) {
  for (Outcome& outcome : outcomes) {
    const auto at = batches_.find(outcome.batch_id);
    TOCSIN_CHECK(at != batches_.end());
    if (at->second.left > 1) {
      --at->second.left;
      at->second.answer(outcome.index, std::move(outcome.delivered));
      continue;
    }
    // The answer may deliver the next batch: the map is as it should be before it runs.
    const auto last = batches_.extract(at);
    last.mapped().answer(outcome.index, std::move(outcome.delivered));
  }
  if (!closed) return;
  TOCSIN_CHECK(batches_.empty());
  channel_ = nullptr;
  std::exchange(done_, nullptr)();  // the last: it may destroy the sink
}

}  // namespace tocsin::rabbitmq
