// Message: encodes jobs for RabbitMQ: persistent, mandatory, with the exchange and routing key of the topic's
// templates, the headers that every sink sends, and the job's own headers by their own names.
//
// One for a topic, on the publisher's thread. It uses its buffers again for each job.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/job.h"
#include "model/owners.h"
#include "model/template.h"
#include "model/topic.h"
#include "sinks/rabbitmq/codec.h"

namespace tocsin::rabbitmq {

/// Which delivery a returned message was.
struct MessageName {
  std::string_view id;
  Token token;
};
/// Nothing if it is not one of ours.
std::optional<MessageName> NameOf(const amqp_basic_properties_t& properties);

class Message {
 public:
  /// kInvalidArgument or kForbidden names the setting. `owners` may be null, and outlives it.
  static Result<Message> Make(const Topic& topic, const Owners* owners = nullptr);

  const std::string& topic() const { return topic_; }
  bool ExchangeDependsOnJob() const { return exchange_template_.DependsOnJob(); }
  /// Valid until the next call of any method.
  const std::string& ExchangeOf(const JobView& job);
  /// Publishes `job` on a channel. An error, and nothing is written, if AMQP cannot carry it.
  Status Append(Encoder& encoder, std::string& out, uint16_t channel, const JobView& job);

 private:
  Message() = default;

  Status Name(const JobView& job);
  /// Of the exchange or, with the default one, of the queue that the routing key names.
  Status CheckOwner() const;
  Status SetHeaders(const JobView& job);
  amqp_basic_properties_t Properties(const JobView& job);

  std::string topic_;
  const Owners* owners_ = nullptr;
  Template exchange_template_;
  Template routing_key_template_;

  std::string exchange_;
  std::string routing_key_;
  std::array<std::string, 6> values_;  // of the headers that every sink sends
  std::string_view content_type_;
  std::vector<amqp_table_entry_t> headers_;
};

}  // namespace tocsin::rabbitmq
