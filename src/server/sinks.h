// NodeSinks: makes the sinks of a node by their names, and owns what those of a kind share: the producers of Kafka, the
// connection to RabbitMQ, the rules of webhooks. The only place that names concrete sinks.
//
// Made by the main thread before the loops run, and destroyed by it after the service: no sink is left then.
// Thread-safe in between. Nothing is connected to before a topic needs it.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "base/secrets.h"
#include "config/config.h"
#include "sinks/kafka/sinks.h"
#include "sinks/rabbitmq/publisher.h"
#include "sinks/webhook/webhooks.h"
#include "spi/sink.h"

namespace tocsin {

class NodeSinks final : public Sinks {
 public:
  /// kInvalidArgument names the option that cannot be used. `clock` outlives it.
  static Result<std::unique_ptr<NodeSinks>> Make(const Config& config, const Clock& clock);

  Status Check(const Topic& topic) const override;
  /// The loop is a net::AsioLoop.
  Result<std::unique_ptr<Sink>> Open(const Topic& topic, Loop& loop) override;

 private:
  explicit NodeSinks(const Config& config) : secrets_(config.secrets_dir) {}
  Status MakeParts(const Config& config, const Clock& clock);

  const Secrets secrets_;
  std::unique_ptr<webhook::Webhooks> webhooks_;
  std::unique_ptr<KafkaSinks> kafka_;
  std::unique_ptr<rabbitmq::Publisher> rabbitmq_;  // null where none is configured
};

}  // namespace tocsin
