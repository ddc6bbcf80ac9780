#include <array>

#include "cli/verbs/delivery_flags.h"
#include "cli/verbs/parts.h"
#include "cli/verbs/topic_view.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

struct Setting {
  Flag flag;
  std::string_view field;
};

std::vector<Setting> Settings() {
  return {
      {{.name = "slots",
        .kind = Kind::kNumber,
        .value = "N",
        .doc = "Partitions, a power of two. Fixed when the topic is created."},
       "slots"},
      {{.name = "capacity-jobs",
        .kind = Kind::kNumber,
        .value = "N",
        .doc = "Jobs that it holds at most, those leased and dead included. 0: no limit."},
       "capacity_jobs"},
      {{.name = "capacity-bytes",
        .kind = Kind::kSize,
        .value = "SIZE",
        .doc = "Bytes of these jobs, such as 64MiB. 0: no limit."},
       "capacity_bytes"},
      {{.name = "lease",
        .kind = Kind::kDuration,
        .value = "DURATION",
        .doc = "How long a consumer has to acknowledge."},
       "lease_ms"},
      {{.name = "attempts", .kind = Kind::kNumber, .value = "N", .doc = "Deliveries before a job is a dead letter."},
       "max_attempts"},
      {{.name = "backoff",
        .kind = Kind::kDuration,
        .value = "DURATION",
        .doc = "Rest after a first failed attempt; it doubles with each further one."},
       "backoff_base_ms"},
      {{.name = "backoff-max", .kind = Kind::kDuration, .value = "DURATION", .doc = "The longest rest."},
       "backoff_max_ms"},
      {{.name = "count", .kind = Kind::kNumber, .value = "N", .doc = "Events that a count trigger waits for."},
       "count_limit"},
      {{.name = "retention",
        .kind = Kind::kDuration,
        .value = "DURATION",
        .doc = "How long done and cancelled jobs can still be looked up."},
       "retention_ms"},
      {{.name = "paused",
        .kind = Kind::kChoice,
        .value = "YESNO",
        .doc = "Whether nothing is delivered.",
        .choices = {"yes", "no"}},
       "paused"},
  };
}

/// The value of a flag that is given, as the API takes it.
json::value ValueOf(const Flag& flag, const Arguments& arguments) {
  const std::string text = *arguments.Text(flag.name);
  if (flag.kind == Kind::kText) return json::value(text);
  if (flag.kind != Kind::kChoice) return *arguments.Number(flag.name);
  if (text == "yes" || text == "no") return text == "yes";
  return json::value(text);
}

Result<int> Run(Context& context, const Arguments& arguments) {
  json::object body;
  for (const Setting& setting : Settings()) {
    if (arguments.Has(setting.flag.name)) body[setting.field] = ValueOf(setting.flag, arguments);
  }
  json::object delivery;
  for (const DeliveryFlag& setting : DeliveryFlags()) {
    if (arguments.Has(setting.flag.name)) delivery[setting.field] = ValueOf(setting.flag, arguments);
  }
  if (!delivery.empty()) body["delivery"] = std::move(delivery);
  const auto reply = context.api.Call("PUT", TopicPath(*arguments.Text("TOPIC")), &body);
  if (!reply) return std::unexpected(reply.error());
  PrintTopic(context.out, *reply);
  return kExitOk;
}

}  // namespace

Command TopicSet() {
  std::vector<Flag> flags;
  for (Setting& setting : Settings()) flags.push_back(std::move(setting.flag));
  for (const DeliveryFlag& setting : DeliveryFlags()) flags.push_back(setting.flag);
  return {
      .name = "topic set",
      .summary = "creates a topic, or changes its settings",
      .details = "A setting that is not named keeps its value; of a new topic, its default.",
      .positionals = {kTopic},
      .flags = std::move(flags),
      .examples = {{"topic set orders --lease 1m --attempts 5", "slow consumers, and few attempts"},
                   {"topic set orders --capacity-bytes 64MiB", "submits are refused beyond that"},
                   {"topic set orders --sink webhook --url https://shop.example/hook --secret orders",
                    "due jobs are posted there, signed with the server's secret of that name"},
                   {"topic set orders --sink pull", "consumers reserve them again"}},
      .no = "it contradicts what is stored, such as another number of slots",
      .run = Run,
  };
}

}  // namespace tocsin::cli
