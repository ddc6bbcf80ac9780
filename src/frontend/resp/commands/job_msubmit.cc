#include "core/validate.h"
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

constexpr Option<When> kOptions[] = {{"DELAY", 1, TakeDelay}, {"AT", 1, TakeAt}};

void Run(Call& call) {
  if (!SameWord(call.args[1], "DELAY") && !SameWord(call.args[1], "AT")) {
    return call.Fail({Code::kInvalidArgument, "DELAY ms or AT ms has to stand behind the topic", "DELAY"});
  }
  When when;
  if (const Status status = ReadOptions(when, call.args.subspan(1, 2), kOptions); !status) {
    return call.Fail(status.error());
  }
  const Values payloads = call.args.subspan(3);
  if (const Status few = CheckBatch(call, "payloads", payloads.size()); !few) return call.Fail(few.error());
  NewJob job;
  SetWhen(job, when);
  const Server& server = call.session.server();
  const Moment now = server.context().clock.Now();
  for (const std::string_view payload : payloads) {
    job.payload = payload;
    const Status valid = Validate(job, server.context().service.limits(), now);
    if (!valid) return call.Fail(valid.error());
  }
  SubmitRun& run = call.session.pipeline().Open<SubmitRun>(call, payloads.size());
  run.parts.push_back({.items = payloads.size(), .many = true});
  run.request.jobs.reserve(run.request.jobs.size() + payloads.size());
  for (const std::string_view payload : payloads) {
    job.payload = payload;
    run.request.jobs.push_back(job);
  }
}

}  // namespace

const Command kJobMsubmit = {
    .name = "JOB.MSUBMIT",
    .syntax = "topic DELAY ms | AT ms payload [payload ...]",
    .summary = "Stores many jobs that are due at the same time.",
    .args_min = 4,
    .args_max = kAnyNumber,
    .access = auth::Access::kSubmit,
    .writes = true,
    .run = Run,
};

}  // namespace tocsin::resp
