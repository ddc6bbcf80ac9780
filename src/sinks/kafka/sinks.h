// KafkaSinks: the node's part of all sinks that deliver to Kafka. Sinks share its producers: one for each time-out in
// use, since a producer has one for all its messages; as a rule that is one for the node. They are rounded up to a few,
// so that the number of producers is bounded, whatever topics ask for.
//
// Owned by the composition root; outlives its sinks. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "base/result.h"
#include "model/topic.h"
#include "sinks/kafka/options.h"
#include "spi/sink.h"

namespace tocsin {

namespace kafka {
class Producer;
}

/// Whether a sink could be made for this topic, whose delivery is valid. kInvalidArgument names the field.
Status CheckKafka(const Topic& topic, const KafkaOptions& options);

class KafkaSinks {
 public:
  /// An Error where the options cannot be used: a file of certificates that is missing, for example. Kafka is not
  /// asked.
  static Result<std::unique_ptr<KafkaSinks>> Make(KafkaOptions options, const Clock& clock);
  ~KafkaSinks();
  KafkaSinks(const KafkaSinks&) = delete;
  KafkaSinks& operator=(const KafkaSinks&) = delete;

  const KafkaOptions& options() const { return options_; }
  /// The loop outlives the sink.
  Result<std::unique_ptr<Sink>> Open(const Topic& topic, Loop& loop);

 private:
  KafkaSinks(KafkaOptions options, const Clock& clock);
  Result<std::shared_ptr<kafka::Producer>> ProducerFor(Millis timeout);
  void RetireIdle();

  const KafkaOptions options_;
  const Clock& clock_;

  std::mutex mutex_;  // guards the rest
  std::map<Millis, std::shared_ptr<kafka::Producer>> producers_;
  std::vector<std::shared_ptr<kafka::Producer>> retired_;  // they end by themselves
};

}  // namespace tocsin
