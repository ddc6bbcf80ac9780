#include "sinks/rabbitmq/message.h"

#include <algorithm>

#include "spi/delivery_headers.h"

namespace tocsin::rabbitmq {
namespace {

// RabbitMQ takes these for lists of further routing keys. A text there closes the channel, with all jobs in flight on
// it.
constexpr std::string_view kRouting[] = {"CC", "BCC"};

constexpr uint8_t kPersistent = 2;

Status CheckShort(std::string_view what, std::string_view text) {
  if (text.size() <= kShortTextMax) return {};
  return Fail(Code::kTooLarge, "{} has {} bytes: AMQP takes {}", what, text.size(), kShortTextMax);
}

}  // namespace

std::optional<MessageName> NameOf(const amqp_basic_properties_t& properties) {
  if ((properties._flags & AMQP_BASIC_HEADERS_FLAG) == 0) return std::nullopt;
  const std::optional<Token> token = ParseToken(FindText(properties.headers, delivery_header::kToken));
  const std::string_view id = FindText(properties.headers, delivery_header::kJobId);
  if (!token || id.empty()) return std::nullopt;
  return MessageName{.id = id, .token = *token};
}

Result<Message> Message::Make(const Topic& topic, const Owners* owners) {
  Message message;
  message.topic_ = topic.name;
  TOCSIN_ASSIGN(message.exchange_template_, Template::Parse("delivery.exchange", topic.delivery.Text("exchange")));
  TOCSIN_ASSIGN(message.routing_key_template_,
                Template::Parse("delivery.routing_key", topic.delivery.Text("routing_key")));
  if (owners == nullptr || owners->empty()) return message;
  message.owners_ = owners;
  // What a job has decides the rest.
  if (message.exchange_template_.DependsOnJob()) return message;
  const bool queue = message.ExchangeOf(JobView()).empty();
  if (queue && message.routing_key_template_.DependsOnJob()) return message;
  message.routing_key_template_.Append(message.routing_key_, topic.name, JobView());
  TOCSIN_TRY(message.CheckOwner());
  return message;
}

Status Message::CheckOwner() const {
  if (owners_ == nullptr) return {};
  if (exchange_.empty()) return owners_->Check(Owned::kQueue, routing_key_, topic_, "delivery.routing_key");
  return owners_->Check(Owned::kExchange, exchange_, topic_, "delivery.exchange");
}

Status Message::Append(Encoder& encoder, std::string& out, uint16_t channel, const JobView& job) {
  TOCSIN_TRY(Name(job));
  TOCSIN_TRY(SetHeaders(job));
  const amqp_basic_publish_t publish{.ticket = 0,
                                     .exchange = BytesOf(exchange_),
                                     .routing_key = BytesOf(routing_key_),
                                     .mandatory = 1,
                                     .immediate = 0};
  return encoder.Publish(out, channel, publish, Properties(job), job.payload);
}

const std::string& Message::ExchangeOf(const JobView& job) {
  exchange_.clear();
  exchange_template_.Append(exchange_, topic_, job);
  return exchange_;
}

Status Message::Name(const JobView& job) {
  ExchangeOf(job);
  routing_key_.clear();
  routing_key_template_.Append(routing_key_, topic_, job);
  TOCSIN_TRY(CheckShort("its exchange", exchange_));
  TOCSIN_TRY(CheckShort("its routing key", routing_key_));
  return CheckOwner();
}

Status Message::SetHeaders(const JobView& job) {
  headers_.clear();
  delivery_header::ForEach(topic_, job, [this](std::string_view name, std::string_view value) {
    std::string& kept = values_[headers_.size()];
    kept = value;
    headers_.push_back(TextField(name, kept));
  });
  content_type_ = {};
  for (const HeaderView& header : job.headers) {
    TOCSIN_TRY(CheckShort("the name of a header", header.name));
    if (std::ranges::find(kRouting, header.name) != std::end(kRouting)) {
      return Fail(Code::kInvalidArgument, "it has the header {}, by which RabbitMQ would route it", header.name);
    }
    const bool content_type = delivery_header::IsContentType(header.name) && header.value.size() <= kShortTextMax;
    if (content_type) content_type_ = header.value;
    headers_.push_back(TextField(header.name, header.value));
  }
  return {};
}

amqp_basic_properties_t Message::Properties(const JobView& job) {
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
  properties.headers = {.num_entries = static_cast<int>(headers_.size()), .entries = headers_.data()};
  properties.delivery_mode = kPersistent;
  if (job.due != kNever) {
    properties._flags |= AMQP_BASIC_TIMESTAMP_FLAG;
    properties.timestamp =
        static_cast<uint64_t>(std::chrono::floor<std::chrono::seconds>(job.due).time_since_epoch().count());
  }
  const std::string_view id = FindText(properties.headers, delivery_header::kJobId);
  if (id.size() <= kShortTextMax) {  // an id may have one byte more; the header has it in any case
    properties._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
    properties.message_id = BytesOf(id);
  }
  if (!content_type_.empty()) {
    properties._flags |= AMQP_BASIC_CONTENT_TYPE_FLAG;
    properties.content_type = BytesOf(content_type_);
  }
  return properties;
}

}  // namespace tocsin::rabbitmq
