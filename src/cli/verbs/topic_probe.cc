// `tocsin topic test`.
#include <array>

#include "cli/verbs/parts.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

constexpr std::array kOutcomes{
    Outcome{"confirmed", "the receiver has taken the probe", true},
    Outcome{"retry", "the receiver has not confirmed; a job would be tried again", false},
    Outcome{"refused", "the receiver does not want it; a job would be a dead letter", false},
};

Result<int> Run(Context& context, const Arguments& arguments) {
  const auto reply = context.api.Call("POST", TopicPath(*arguments.Text("TOPIC"), "/test"));
  if (!reply) return std::unexpected(reply.error());
  const int status = PrintOutcome(context, *reply, kOutcomes);
  if (context.out.json()) return status;
  if (const std::string reason = TextOf(*reply, "reason"); !reason.empty()) {
    context.out.Print("reason: {}\n", Printable(reason));
  }
  context.out.Print("took: {} ms\n", IntegerOf(*reply, "took_ms"));
  return status;
}

}  // namespace

Command TopicTest() {
  return {
      .name = "topic test",
      .summary = "sends one probe to the receiver of a topic, and says what became of it",
      .details =
          "The probe is no job of the topic: it is not stored, and carries the header tocsin-probe, so that a "
          "receiver can leave it alone. Works while the topic is paused, too.",
      .positionals = {kTopic},
      .examples = {{"topic test orders", "whether the webhook of orders answers as it should"}},
      .no = "the receiver did not confirm the probe, or there is no such topic",
      .run = Run,
  };
}

}  // namespace tocsin::cli
