// KafkaSink: delivers the jobs of one topic to Kafka. Owned by the topic's dispatcher, on its loop.
//
// Invariants: jobs are handed to librdkafka in the order in which they came; while its queue is full the rest waits
// here in that order. A batch is in batches_ until all of its jobs are answered.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/loop.h"
#include "model/owners.h"
#include "model/template.h"
#include "model/topic.h"
#include "sinks/kafka/channel.h"
#include "sinks/kafka/producer.h"
#include "spi/sink.h"

namespace tocsin::kafka {

/// Which Kafka topic and key the jobs of a topic get. Errors name the field of the delivery.
struct Addressing {
  static Result<Addressing> Parse(const Topic& topic);

  std::string topic;  // of Tocsin, not of Kafka
  Template kafka_topic;
  Template key;
  const Owners* owners = nullptr;  // if jobs have to be checked for whose the topic of Kafka is; the factory's
};

class KafkaSink final : public Sink {
 public:
  KafkaSink(std::shared_ptr<Producer> producer, Addressing addressing, Loop& loop);
  ~KafkaSink() override;

  void Deliver(std::shared_ptr<const JobBatch> batch, Answer answer) override;
  void Close(Task done) override;

 private:
  /// An answer that is known at once.
  struct Known {
    Message* message;
    Delivered delivered;
  };

  // For the channel, on the loop.
  friend class Channel;
  void OnReports(std::vector<Report> reports);
  void OnWake();

  void Pump();
  /// Sends what waits; false if librdkafka's queue is full.
  bool SendWaiting(Client& client, std::vector<Known>& known);
  bool SendOne(Client& client, Batch& batch, Message& message, std::vector<Known>& known);
  void AnswerOne(Message& message, Delivered delivered);
  /// The batch's messages from that index on.
  void AnswerFrom(Batch& batch, size_t index, const Delivered& delivered);
  void EndCloseIfDone();

  const std::shared_ptr<Producer> producer_;
  const Addressing addressing_;
  Loop& loop_;
  const std::shared_ptr<Channel> channel_;

  std::unordered_set<Batch*> batches_;
  std::deque<Batch*> waiting_;  // with jobs that were not sent yet
  size_t under_way_ = 0;        // jobs that are not answered
  std::string name_;            // scratch
  std::string key_;
  bool wake_asked_ = false;
  bool closing_ = false;
  Producer::TimePoint close_by_{};
  Task closed_;  // while closing
};

}  // namespace tocsin::kafka
