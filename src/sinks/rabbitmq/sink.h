// RabbitSink: the Sink of one topic. It hands batches to the publisher's thread, and answers on its own loop when that
// thread reports outcomes.
//
// Owned by the dispatcher of the topic, on the thread of its loop.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sinks/rabbitmq/publisher.h"

namespace tocsin::rabbitmq {

class RabbitSink final : public Sink {
 public:
  RabbitSink(Publisher& publisher, Loop& loop, Message message, Channel::Settings settings);
  ~RabbitSink() override;

  void Deliver(std::shared_ptr<const JobBatch> batch, Answer answer) override;
  void Close(Task done) override;

 private:
  struct UnderWay {
    Answer answer;
    size_t left = 0;
  };

  void Take(std::vector<Outcome> outcomes, bool closed);

  Publisher& publisher_;
  /// The publisher's, used on its thread only; null once it is closed.
  Channel* channel_ = nullptr;
  std::unordered_map<uint64_t, UnderWay> batches_;  // by id
  uint64_t last_id_ = 0;
  Task done_;
};

}  // namespace tocsin::rabbitmq
