#include "server/sinks.h"

#include <utility>

#include "config/docs.h"
#include "server/sink_options.h"

namespace tocsin {
namespace {

// As in model/delivery.cc.
constexpr std::string_view kWebhook = "webhook";
constexpr std::string_view kKafka = "kafka";
constexpr std::string_view kRabbitmq = "rabbitmq";

std::unexpected<Error> NoRabbitmq() {
  return FailField(Code::kInvalidArgument, "delivery.sink",
                   "delivery.sink is rabbitmq, but this server knows no RabbitMQ: set rabbitmq.url");
}

std::unexpected<Error> Unknown(const Topic& topic) {
  return FailField(Code::kInvalidArgument, "delivery.sink", "delivery.sink is \"{}\": this server has no such sink",
                   topic.delivery.sink);
}

}  // namespace

Result<std::unique_ptr<NodeSinks>> NodeSinks::Make(const Config& config, const Clock& clock) {
  std::unique_ptr<NodeSinks> sinks(new NodeSinks(config));
  TOCSIN_TRY(sinks->MakeParts(config, clock));
  return sinks;
}

Status NodeSinks::MakeParts(const Config& config, const Clock& clock) {
  auto webhooks =
      webhook::Webhooks::Make({.allow = config.webhook_allow,
                               .ca_file = config.webhook_ca_file,
                               .version = std::string(Version()),
                               .find_secret = [this](std::string_view name) { return secrets_.Find(name); }});
  if (!webhooks) return std::unexpected(std::move(webhooks).error());
  webhooks_ = *std::move(webhooks);

  auto kafka_options = KafkaOptionsOf(config);
  if (!kafka_options) return std::unexpected(std::move(kafka_options).error());
  auto kafka = KafkaSinks::Make(*std::move(kafka_options), clock);
  if (!kafka) return std::unexpected(std::move(kafka).error());
  kafka_ = *std::move(kafka);

  if (config.rabbitmq_url.empty()) return {};
  auto rabbitmq_options = RabbitmqOptionsOf(config);
  if (!rabbitmq_options) return std::unexpected(std::move(rabbitmq_options).error());
  auto rabbitmq = rabbitmq::Publisher::Make(*std::move(rabbitmq_options));
  if (!rabbitmq) return std::unexpected(std::move(rabbitmq).error());
  rabbitmq_ = *std::move(rabbitmq);
  return {};
}

Status NodeSinks::Check(const Topic& topic) const {
  const std::string_view sink = topic.delivery.sink;
  if (sink == kWebhook) return webhooks_->Check(topic);
  if (sink == kKafka) return CheckKafka(topic, kafka_->options());
  if (sink == kRabbitmq && rabbitmq_ == nullptr) return NoRabbitmq();
  if (sink == kRabbitmq) return rabbitmq::CheckTopic(topic);
  return Unknown(topic);
}

Result<std::unique_ptr<Sink>> NodeSinks::Open(const Topic& topic, Loop& loop) {
  const std::string_view sink = topic.delivery.sink;
  if (sink == kWebhook) return webhooks_->Open(topic, dynamic_cast<net::AsioLoop&>(loop));
  if (sink == kKafka) return kafka_->Open(topic, loop);
  if (sink == kRabbitmq && rabbitmq_ == nullptr) return NoRabbitmq();
  if (sink == kRabbitmq) return rabbitmq_->Open(topic, loop);
  return Unknown(topic);
}

}  // namespace tocsin
