#include "server/sinks.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "base/secrets.h"
#include "base/version.h"
#include "config/options.h"
#include "model/owners.h"
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
  const Owners& owners;
};
using Made = Result<std::unique_ptr<SinkFactory>>;

Made MakeWebhook(const Parts& parts) {
  return webhook::Factory::Make({.allow = parts.config.webhook_allow,
                                 .ca_file = parts.config.webhook_ca_file,
                                 .version = std::string(Version()),
                                 .find_secret = [secrets = Secrets(parts.config.secrets_dir)](
                                                    std::string_view name) { return secrets.Find(name); },
                                 .owners = parts.owners,
                                 .loops = parts.loops,
                                 .connections_max = parts.webhook_connections});
}

Made MakeKafka(const Parts& parts) {
  TOCSIN_ASSIGN(kafka::Options options, KafkaOptionsOf(parts.config));
  options.owners = parts.owners;
  return kafka::Factory::Make(std::move(options), parts.clock);
}

Made MakeRabbitmq(const Parts& parts) {
  TOCSIN_ASSIGN(rabbitmq::Options options, RabbitmqOptionsOf(parts.config));
  options.owners = parts.owners;
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

/// Whether the environment has a secret.
bool AnyVariable() {
  const std::string begin = Secrets::VariableOf("");
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (std::string_view(*variable).starts_with(begin)) return true;
  }
  return false;
}

}  // namespace

std::string ClosedToPrefixes(const Config& config, const auth::TokenSet& tokens) {
  if (!config.push_owners.empty()) return {};
  const auto of_prefix = [](const auth::TokenRecord& record) {
    return !record.grant.prefix.empty() && record.grant.scopes.Has(auth::Scope::kAdmin);
  };
  const auto admin = std::ranges::find_if(tokens.records(), of_prefix);
  if (admin == tokens.records().end()) return {};
  std::vector<std::string_view> closed;
  if (!config.secrets_dir.empty() || AnyVariable()) closed.emplace_back("secrets");
  if (!config.kafka_brokers.empty()) closed.emplace_back("Kafka topics");
  if (!config.rabbitmq_url.empty()) closed.emplace_back("exchanges and queues of RabbitMQ");
  if (closed.empty()) return {};
  return fmt::format(
      "push.owners is empty: whoever has an access token with the scope admin for the topics of one prefix, such as {} "
      "for {}*, cannot make them use {}. Say with push.owners which prefix each belongs to",
      admin->grant.name, admin->grant.prefix, fmt::join(closed, ", "));
}

Result<std::unique_ptr<NodeSinks>> NodeSinks::Make(const Config& config, const Clock& clock,
                                                   std::vector<net::AsioLoop*> loops, size_t webhook_connections) {
  auto sinks = std::make_unique<NodeSinks>();
  TOCSIN_ASSIGN(sinks->owners_, Owners::Parse(config.push_owners));
  for (const Kind& kind : kKinds) {
    if (!kind.option.empty() && ShowOption(*FindOption(kind.option), config).empty()) continue;
    TOCSIN_ASSIGN(sinks->factories_[kind.name], kind.make({config, clock, loops, webhook_connections, sinks->owners_}));
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
