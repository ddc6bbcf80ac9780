#include "cli/verbs/job_view.h"
#include "cli/verbs/parts.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

Result<int> Run(Context& context, const Arguments& arguments) {
  const auto reply = context.api.Get(JobPathOf(arguments));
  if (!reply) return std::unexpected(reply.error());
  if (context.out.json()) {
    context.out.Json(*reply);
  } else {
    PrintJob(context.out, *reply, ServerNow(context));
  }
  return kExitOk;
}

}  // namespace

Command Get() {
  return {
      .name = "get",
      .summary = "shows one job",
      .details = "Done and cancelled jobs can be seen for as long as the topic's retention says.",
      .positionals = {kTopic, kJobId},
      .flags = {KeyFlag()},
      .examples = {{"get orders order-17", "its state, when it is due, what it carries"}},
      .no = "no such job is stored",
      .run = Run,
  };
}

}  // namespace tocsin::cli
