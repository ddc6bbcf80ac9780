// RabbitSink: the Sink of one topic. It hands batches over to the publisher's thread, and calls back on its own loop
// what that reports.
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
  Channel* channel_ = nullptr;                      // the publisher's; on its thread alone, until it reports the end
  std::unordered_map<uint64_t, UnderWay> batches_;  // by id
  uint64_t last_id_ = 0;
  Task done_;
};

}  // namespace tocsin::rabbitmq
