#include "server/sinks.h"

#include <algorithm>
#include <utility>

#include "base/secrets.h"
#include "base/version.h"
#include "config/options.h"
#include "server/options.h"
#include "sinks/kafka/factory.h"
#include "sinks/rabbitmq/publisher.h"
#include "sinks/webhook/factory.h"

namespace tocsin {
namespace {

struct Parts {
  const Config& config;
  const Clock& clock;
  const std::vector<net::AsioLoop*>& loops;
  size_t webhook_connections;
};
using Made = Result<std::unique_ptr<SinkFactory>>;

Made MakeWebhook(const Parts& parts) {
  return webhook::Factory::Make({.allow = parts.config.webhook_allow,
                                 .ca_file = parts.config.webhook_ca_file,
                                 .version = std::string(Version()),
                                 .find_secret = [secrets = Secrets(parts.config.secrets_dir)](
                                                    std::string_view name) { return secrets.Find(name); },
                                 .loops = parts.loops,
                                 .connections_max = parts.webhook_connections});
}

Made MakeKafka(const Parts& parts) {
  TOCSIN_ASSIGN(kafka::Options options, KafkaOptionsOf(parts.config));
  return kafka::Factory::Make(std::move(options), parts.clock);
}

Made MakeRabbitmq(const Parts& parts) {
  TOCSIN_ASSIGN(rabbitmq::Options options, RabbitmqOptionsOf(parts.config));
  return rabbitmq::Publisher::Make(std::move(options));
}

/// To add a sink, add its row here and one in model/delivery.cc.
struct Kind {
  std::string_view name;
  Made (*make)(const Parts& parts);
  std::string_view option;  // the kind is configured if this one is set; empty: always
};
constexpr Kind kKinds[] = {
    {"webhook", MakeWebhook, ""},
    {"kafka", MakeKafka, "kafka.brokers"},
    {"rabbitmq", MakeRabbitmq, "rabbitmq.url"},
};

}  // namespace

Result<std::unique_ptr<NodeSinks>> NodeSinks::Make(const Config& config, const Clock& clock,
                                                   std::vector<net::AsioLoop*> loops, size_t webhook_connections) {
  auto sinks = std::make_unique<NodeSinks>();
  for (const Kind& kind : kKinds) {
    if (!kind.option.empty() && ShowOption(*FindOption(kind.option), config).empty()) continue;
    TOCSIN_ASSIGN(sinks->factories_[kind.name], kind.make({config, clock, loops, webhook_connections}));
  }
  return sinks;
}

Result<SinkFactory*> NodeSinks::Find(const Topic& topic) const {
  const std::string& name = topic.delivery.sink;
  if (const auto found = factories_.find(name); found != factories_.end()) return found->second.get();
  const auto* const kind = std::ranges::find(kKinds, name, &Kind::name);
  if (kind != std::end(kKinds)) {
    return FailField(Code::kInvalidArgument, "delivery.sink",
                     "delivery.sink is {0}, but this server is not configured for {0}: set {1}", name, kind->option);
  }
  return FailField(Code::kInvalidArgument, "delivery.sink", "delivery.sink is \"{}\": this server has no such sink",
                   name);
}

Status NodeSinks::Check(const Topic& topic) const {
  TOCSIN_ASSIGN(const SinkFactory* const factory, Find(topic));
  return factory->Check(topic);
}

Result<std::unique_ptr<Sink>> NodeSinks::Open(const Topic& topic, Loop& loop) {
  TOCSIN_ASSIGN(SinkFactory* const factory, Find(topic));
  return factory->Open(topic, loop);
}

}  // namespace tocsin
