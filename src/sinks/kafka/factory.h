// Factory: makes the sinks of a node that deliver to Kafka, and owns the producers that they share. There is one
// producer for each time-out in use, because a producer has one time-out for all its messages; most nodes have one.
// Time-outs are rounded up to a few steps, so the number of producers is bounded, whatever topics ask for.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sinks/kafka/options.h"
#include "spi/sink.h"

namespace tocsin::kafka {

class Producer;

class Factory final : public SinkFactory {
 public:
  /// An error if the options cannot be used, for example because a file of certificates is missing. Kafka is not
  /// asked. `clock` outlives it.
  static Result<std::unique_ptr<Factory>> Make(Options options, const Clock& clock);
  ~Factory() override;

  Status Check(const Topic& topic) const override;
  Result<std::unique_ptr<Sink>> Open(const Topic& topic, Loop& loop) override;

 private:
  Factory(Options options, const Clock& clock);
  Result<std::shared_ptr<Producer>> ProducerFor(Millis timeout);
  void RetireIdle();

  const Options options_;
  const Clock& clock_;

  std::mutex mutex_;  // guards the rest
  std::map<Millis, std::shared_ptr<Producer>> producers_;
  std::vector<std::shared_ptr<Producer>> retired_;  // they end by themselves
};

}  // namespace tocsin::kafka
