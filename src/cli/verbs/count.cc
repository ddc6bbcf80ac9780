#include <array>

#include "cli/verbs/parts.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

constexpr std::array kOutcomes{
    Outcome{"counted", "", true},
    Outcome{"fired", "the job is due now", true},
    Outcome{"repeated", "this event was counted before", true},
    Outcome{"not_counted", "the job does not wait for events, or has fired already"},
    Outcome{"finished", "it is done, cancelled or dead; nothing changed"},
    Outcome{"unknown", "no such job is stored"},
};

Result<int> Run(Context& context, const Arguments& arguments) {
  const json::object event{{"event", *arguments.Text("event")}, {"by", *arguments.Number("by")}};
  const auto reply = context.api.Post(JobPathOf(arguments, "/count"), event);
  if (!reply) return std::unexpected(reply.error());
  const int status = PrintOutcome(context, *reply, kOutcomes);
  if (status == kExitOk && !context.out.json()) {
    context.out.Print("events still to come: {}\n", IntegerOf(*reply, "left"));
  }
  return status;
}

}  // namespace

Command Count() {
  return {
      .name = "count",
      .summary = "tells a job that waits for events of one more",
      .details = "An event that was counted already does not count again, so that it is safe to repeat a call.",
      .positionals = {kTopic, kJobId},
      .flags = {{.name = "event", .value = "EVENT", .doc = "The event's own id.", .required = true},
                {.name = "by", .kind = Kind::kNumber, .value = "N", .fallback = "1", .doc = "How many it counts for."},
                KeyFlag()},
      .examples = {{"count votes poll-7 --event vote-ann", "one of the three votes that poll-7 waits for"}},
      .no = "the job does not wait for events, is finished or unknown",
      .run = Run,
  };
}

}  // namespace tocsin::cli
