#include <algorithm>

#include "cli/commands.h"
#include "cli/text/stderr.h"
#include "cli/verbs/job_view.h"
#include "cli/verbs/outcome.h"
#include "cli/verbs/request.h"
#include "cli/verbs/verb_command.h"

namespace tocsin::cli {
namespace {

constexpr Millis kWaitMax{50'000};  // of one call: the server ends a longer one

/// Asks again until a job is due or --wait is over: a wait may be longer than one call can be.
Result<json::array> Take(Context& context, const Arguments& arguments) {
  const auto end = context.clock.IoNow() + arguments.Duration("wait").value_or(Millis(0));
  const api::Verb& verb = VerbNamed("reserve");
  auto request = RequestOf(verb, arguments);
  if (!request) return std::unexpected(std::move(request).error());
  while (true) {
    const auto left = std::chrono::ceil<Millis>(end - context.clock.IoNow());
    const Millis wait = std::clamp(left, Millis(0), kWaitMax);
    request->body["wait_ms"] = wait.count();
    const auto answer = Send(context, verb, *request, context.api.limit() + wait);
    if (!answer) return std::unexpected(answer.error());
    if (!ArrayOf(*answer, "jobs").empty() || left <= kWaitMax) return ArrayOf(*answer, "jobs");
  }
}

Result<int> Run(Context& context, const Arguments& arguments) {
  const auto jobs = Take(context, arguments);
  if (!jobs) return std::unexpected(jobs.error());
  if (jobs->empty()) {
    if (!context.out.json()) PrintStderr("tocsin: nothing is due\n");
    return kExitNo;
  }
  const Time now = context.out.json() ? Time{} : ServerNow(context);
  json::array tokens;
  for (const json::value& job : *jobs) {
    if (!job.is_object()) continue;
    if (context.out.json()) {
      context.out.Json(job);
    } else {
      if (!tokens.empty()) context.out.Write("\n");
      PrintJob(context.out, job.get_object(), now);
    }
    tokens.emplace_back(TextOf(job.get_object(), "token"));
  }
  if (!arguments.Has("ack")) return kExitOk;
  TOCSIN_TRY(context.out.Flush());  // never acknowledge a job that could not be shown
  const auto answer =
      Send(context, VerbNamed("ack"), {TopicPath(*arguments.Text("TOPIC"), "/ack"), {{"tokens", std::move(tokens)}}});
  if (!answer) return std::unexpected(answer.error());
  return StatusOf(ArrayOf(*answer, "results"));
}

}  // namespace

Command Reserve() {
  return VerbCommand(
      "reserve", {.details = "A job that is not acknowledged before its lease ends is delivered again.",
                  .flags = {{.name = "ack", .kind = Kind::kSwitch, .doc = "Acknowledge at once, after printing."}},
                  .examples = {{"reserve demo --wait 10s", "the next job, if one is due within ten seconds"},
                               {"reserve demo --max 100 --ack --json", "up to a hundred, a line each, and done with"}},
                  .no = "nothing was due, the topic pushes its jobs, or there is no such topic",
                  .run = Run});
}

}  // namespace tocsin::cli
