#include <algorithm>

#include "cli/text/stderr.h"
#include "cli/verbs/job_view.h"
#include "cli/verbs/parts.h"
#include "cli/verbs/settle.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

constexpr Millis kWaitMax{50'000};  // of one call: the server ends a longer one

/// Asks again until something is due or --wait is over: a wait may be longer than one call can be.
Result<json::array> Take(Context& context, const Arguments& arguments) {
  const auto end = context.clock.IoNow() + *arguments.Duration("wait");
  json::object body{{"max", *arguments.Number("max")}};
  if (const auto lease = arguments.Duration("lease")) body["lease_ms"] = lease->count();
  while (true) {
    const auto left = std::chrono::ceil<Millis>(end - context.clock.IoNow());
    const Millis wait = std::clamp(left, Millis(0), kWaitMax);
    body["wait_ms"] = wait.count();
    auto reply = context.api.Post(TopicPath(*arguments.Text("TOPIC"), "/reserve"), body, context.api.limit() + wait);
    if (!reply) return std::unexpected(std::move(reply).error());
    if (!ArrayOf(*reply, "jobs").empty() || left <= kWaitMax) return ArrayOf(*reply, "jobs");
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
  TOCSIN_TRY(context.out.Flush());  // what nobody got to see must not be acknowledged
  const auto results = Settle(context, *arguments.Text("TOPIC"), "ack", {{"tokens", std::move(tokens)}});
  if (!results) return std::unexpected(results.error());
  return StatusOf(*results);
}

}  // namespace

Command Reserve() {
  return {
      .name = "reserve",
      .summary = "takes jobs that are due, each under a lease",
      .details = "A job that is not acknowledged before its lease ends is delivered again.",
      .positionals = {kTopic},
      .flags = {{.name = "max", .kind = Kind::kNumber, .value = "N", .fallback = "1", .doc = "How many at most."},
                {.name = "wait",
                 .kind = Kind::kDuration,
                 .value = "DURATION",
                 .fallback = "0s",
                 .doc = "How long to wait where nothing is due yet."},
                {.name = "lease",
                 .kind = Kind::kDuration,
                 .value = "DURATION",
                 .doc = "How long you have to acknowledge; the topic's unless given."},
                {.name = "ack", .kind = Kind::kSwitch, .doc = "Acknowledge at once, after printing."}},
      .examples = {{"reserve demo --wait 10s", "the next job, if one is due within ten seconds"},
                   {"reserve demo --max 100 --ack --json", "up to a hundred, a line each, and done with"}},
      .no = "nothing was due",
      .run = Run,
  };
}

}  // namespace tocsin::cli
