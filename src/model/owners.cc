#include "model/owners.h"

#include <algorithm>
#include <iterator>

#include "base/comma_list.h"
#include "base/secrets.h"
#include "base/text.h"
#include "model/template.h"

namespace tocsin {
namespace {

constexpr std::string_view kKinds[] = {"secret", "kafka", "exchange", "queue"};  // in the order of the enum
constexpr std::string_view kShown[] = {"the secret", "the Kafka topic", "the exchange", "the queue"};

/// The settings of a topic's delivery that name something.
struct Naming {
  std::string_view sink;
  std::string_view setting;
  Owned what;
};
constexpr Naming kNamings[] = {{"webhook", "secret", Owned::kSecret},
                               {"kafka", "kafka_topic", Owned::kKafka},
                               {"rabbitmq", "exchange", Owned::kExchange},
                               {"rabbitmq", "routing_key", Owned::kQueue}};

/// Different names of secrets may lead to one variable of the environment, so they are compared as that.
std::string Compared(Owned what, std::string_view name) {
  return what == Owned::kSecret ? Secrets::VariableOf(name) : std::string(name);
}

}  // namespace

Result<Owners> Owners::Parse(std::string_view text) {
  Owners owners;
  for (const std::string_view rule : CommaList(text)) TOCSIN_TRY(owners.Add(rule));
  return owners;
}

Status Owners::Add(std::string_view text) {
  const size_t colon = text.find(':');
  const size_t equals = text.find('=');
  const auto* const kind = std::ranges::find(kKinds, text.substr(0, colon));
  if (colon == std::string_view::npos || equals == std::string_view::npos || equals < colon ||
      kind == std::end(kKinds)) {
    return FailField(Code::kInvalidArgument, "push.owners",
                     "push.owners: \"{}\" is no rule: it takes KIND:NAME=PREFIX, where KIND is {}", Shown(text),
                     fmt::join(kKinds, ", "));
  }
  Rule rule{.what = static_cast<Owned>(kind - std::begin(kKinds)), .name = {}, .prefix = {}};
  std::string_view name = text.substr(colon + 1, equals - colon - 1);
  rule.any_rest = name.ends_with('*');
  if (rule.any_rest) name.remove_suffix(1);
  rule.name = Compared(rule.what, name);
  rule.prefix = text.substr(equals + 1);
  rules_.push_back(std::move(rule));
  return {};
}

bool Owners::Allows(Owned what, std::string_view name, std::string_view topic) const {
  if (rules_.empty()) return true;
  const std::string compared = Compared(what, name);
  bool owned = false;
  for (const Rule& rule : rules_) {
    const bool meant = rule.what == what && (rule.any_rest ? compared.starts_with(rule.name) : compared == rule.name);
    if (meant && topic.starts_with(rule.prefix)) return true;
    owned = owned || meant;
  }
  return !owned;
}

bool Owners::Gives(Owned what, std::string_view name, bool open, std::string_view topic) const {
  const std::string compared = Compared(what, name);
  return std::ranges::any_of(rules_, [&](const Rule& rule) {
    if (rule.what != what || !topic.starts_with(rule.prefix)) return false;
    return rule.any_rest ? compared.starts_with(rule.name) : !open && compared == rule.name;
  });
}

Status Owners::CheckGiven(const Topic& topic) const {
  bool to_queue = true;  // the exchange may be the default one
  for (const Naming& naming : kNamings) {
    if (naming.sink != topic.delivery.sink || (naming.what == Owned::kQueue && !to_queue)) continue;
    const std::string field = fmt::format("delivery.{}", naming.setting);
    std::string name(topic.delivery.Text(naming.setting));
    bool open = false;
    if (naming.what != Owned::kSecret) {
      TOCSIN_ASSIGN(const Template made, Template::Parse(field, name));
      name = made.Beginning(topic.name);
      open = made.DependsOnJob();
    }
    if (naming.what == Owned::kExchange) to_queue = name.empty();
    const bool nothing = name.empty() && !open && naming.what != Owned::kQueue;  // no signature, the default exchange
    if (nothing || Gives(naming.what, name, open, topic.name)) continue;
    return FailField(Code::kForbidden, field,
                     "{}: topic {} may not use {} \"{}\": your access token is for the topics of a prefix, and no rule "
                     "of the server's option push.owners gives it to them",
                     field, Shown(topic.name), kShown[static_cast<size_t>(naming.what)],
                     Shown(topic.delivery.Text(naming.setting)));
  }
  return {};
}

Status Owners::Check(Owned what, std::string_view name, std::string_view topic, std::string_view field) const {
  if (Allows(what, name, topic)) return {};
  return FailField(Code::kForbidden, std::string(field),
                   "topic {} may not use {} \"{}\": the server's option push.owners gives it to other topics",
                   Shown(topic), kShown[static_cast<size_t>(what)], Shown(name));
}

}  // namespace tocsin
