// Owners: which topics may use which secrets, Kafka topics, and exchanges and queues of RabbitMQ. Several teams may
// share a server, each with an access token for the topics of a prefix. Without this, each of them could name the
// secret, the Kafka topic or the exchange of another one. What no rule names is for callers who may use all topics. A
// value; sinks share one copy and only read it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/topic.h"

namespace tocsin {

enum class Owned : uint8_t { kSecret, kKafka, kExchange, kQueue };

class Owners {
 public:
  /// Rules with commas between them, such as "secret:shop*=shop-,kafka:ready_shop*=shop-,exchange:shop=shop-": what the
  /// name before "=" stands for belongs to the topics whose names begin with the text after it. A "*" at its end stands
  /// for any rest. kInvalidArgument names push.owners.
  static Result<Owners> Parse(std::string_view text);

  bool empty() const { return rules_.empty(); }
  /// Whether the topic may use it: a rule gives it to the topic's prefix, or no rule is about it.
  bool Allows(Owned what, std::string_view name, std::string_view topic) const;
  /// For a caller who may use only topics of a prefix: a rule gives the topic all that its delivery, which is valid,
  /// names or may come to name for any job. kForbidden names the field.
  Status CheckGiven(const Topic& topic) const;
  /// kForbidden, and does not say whose it is. `field` is what the error names; may be empty.
  Status Check(Owned what, std::string_view name, std::string_view topic, std::string_view field) const;

 private:
  struct Rule {
    Owned what = Owned::kSecret;
    std::string name;  // without the "*"
    bool any_rest = false;
    std::string prefix;
  };

  Status Add(std::string_view text);
  /// A rule gives the name to the topic; or, if `open`, all names that begin so.
  bool Gives(Owned what, std::string_view name, bool open, std::string_view topic) const;

  std::vector<Rule> rules_;
};

}  // namespace tocsin
