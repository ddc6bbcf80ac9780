#include <array>

#include "cli/verbs/parts.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

constexpr std::array kOutcomes{
    Outcome{"cancelled", "it will never be delivered", true},
    Outcome{"in_flight", "a consumer has it; nothing changed"},
    Outcome{"finished", "it is done or dead; nothing changed"},
    Outcome{"unknown", "no such job is stored"},
};

Result<int> Run(Context& context, const Arguments& arguments) {
  const auto reply = context.api.Call("DELETE", JobPathOf(arguments));
  if (!reply) return std::unexpected(reply.error());
  return PrintOutcome(context, *reply, kOutcomes);
}

}  // namespace

Command Cancel() {
  return {
      .name = "cancel",
      .summary = "has a job never delivered, where that is still possible",
      .details = "The answer is definite: after cancelled the job is not delivered, and that is safe on disk.",
      .positionals = {kTopic, kJobId},
      .flags = {KeyFlag()},
      .examples = {{"cancel orders order-17", "the order was paid: no need to remind anybody"}},
      .no = "the job is in flight, finished or unknown",
      .run = Run,
  };
}

}  // namespace tocsin::cli
