#include <array>

#include "cli/verbs/parts.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

constexpr std::array kOutcomes{
    Outcome{"amended", "", true},
    Outcome{"in_flight", "a consumer has it; nothing changed"},
    Outcome{"finished", "it is done, cancelled or dead; nothing changed"},
    Outcome{"unknown", "no such job is stored"},
};

Result<int> Run(Context& context, const Arguments& arguments) {
  json::object change;
  TOCSIN_TRY(PutDue(change, arguments));
  TOCSIN_TRY(PutPayloadOf(change, arguments));
  if (change.empty()) {
    return Fail(Code::kInvalidArgument, "nothing to change: give --in, --at, PAYLOAD or --file");
  }
  const auto reply = context.api.Call("PATCH", JobPathOf(arguments), &change);
  if (!reply) return std::unexpected(reply.error());
  return PrintOutcome(context, *reply, kOutcomes);
}

}  // namespace

Command Amend() {
  std::vector<Flag> flags = DueFlags();
  flags.insert(flags.end(), {FileFlag(), KeyFlag()});
  return {
      .name = "amend",
      .summary = "changes when a job is due, what it carries, or both",
      .positionals = {kTopic,
                      kJobId,
                      {.name = "PAYLOAD", .doc = "What to deliver instead; - reads it from stdin.", .required = false}},
      .flags = std::move(flags),
      .examples = {{"amend orders order-17 --in 2h", "two hours from now instead"},
                   {"amend orders order-17 \"pay at once\"", "the same moment, another payload"}},
      .no = "the job is in flight, finished or unknown",
      .run = Run,
  };
}

}  // namespace tocsin::cli
