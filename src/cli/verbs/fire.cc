#include <array>

#include "cli/verbs/parts.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

constexpr std::array kOutcomes{
    Outcome{"fired", "it is due now", true},
    Outcome{"in_flight", "a consumer has it; nothing changed"},
    Outcome{"finished", "it is done, cancelled or dead; nothing changed"},
    Outcome{"unknown", "no such job is stored"},
};

Result<int> Run(Context& context, const Arguments& arguments) {
  const auto reply = context.api.Call("POST", JobPathOf(arguments, "/fire"));
  if (!reply) return std::unexpected(reply.error());
  return PrintOutcome(context, *reply, kOutcomes);
}

}  // namespace

Command Fire() {
  return {
      .name = "fire",
      .summary = "makes a job due now",
      .positionals = {kTopic, kJobId},
      .flags = {KeyFlag()},
      .examples = {{"fire orders order-17", "no need to wait any longer"}},
      .no = "the job is in flight, finished or unknown",
      .run = Run,
  };
}

}  // namespace tocsin::cli
