// Submitting and changing jobs. Consecutive commands of one kind for one topic become one call of the service
// (Pipeline). Each command is checked by itself, so that it fails alone.
#include "core/validate.h"
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

using api::Wire;

/// False if the call was refused, and answered.
bool Read(Call& call, api::Arguments& arguments) {
  const Status status = ReadArguments(call.args.subspan(1), *call.command.verb, arguments);
  if (!status) call.Fail(status.error());
  return status.has_value();
}

Moment Now(Call& call) { return call.session.server().context().clock.Now(); }

void Amend(Call& call, const Amendment& amendment) {
  const Status valid = Validate(amendment, ServiceOf(call).limits(), Now(call));
  if (!valid) return call.Fail(valid.error());
  call.session.pipeline().Open<AmendRun>(call, 1).request.amendments.push_back(amendment);
}

void AmendAs(Call& call, AmendKind kind) {
  api::Arguments arguments;
  if (Read(call, arguments)) Amend(call, {.job = JobOf(arguments), .kind = kind});
}

void JobMsubmit(Call& call) {
  if (!SameWord(call.args[1], "DELAY") && !SameWord(call.args[1], "AT")) {
    return call.Fail({Code::kInvalidArgument, "DELAY ms or AT ms has to stand behind the topic", "DELAY"});
  }
  api::Arguments arguments;
  Status status = ReadWords(call.args.subspan(1, 2), VerbOf(api::VerbId::kSubmitJobs).fields, arguments);
  if (status) status = FinishJob(Wire::kResp, arguments);
  const Values payloads = call.args.subspan(3);
  if (status) status = CheckBatch(call, "payloads", payloads.size());
  NewJob& job = arguments.job;
  const Moment now = Now(call);
  for (size_t i = 0; i < payloads.size() && status; ++i) {
    job.payload = payloads[i];
    status = Validate(job, ServiceOf(call).limits(), now);
  }
  if (!status) return call.Fail(status.error());
  SubmitRun& run = call.session.pipeline().Open<SubmitRun>(call, payloads.size());
  run.parts.push_back({.items = payloads.size(), .many = true});
  run.request.jobs.reserve(run.request.jobs.size() + payloads.size());
  for (const std::string_view payload : payloads) {
    job.payload = payload;
    run.request.jobs.push_back(job);
  }
}

}  // namespace

Status CheckBatch(const Call& call, std::string_view what, size_t items) {
  const size_t most = call.session.server().context().service.limits().batch;
  if (items <= most) return {};
  return FailField(Code::kInvalidArgument, std::string(what), "{} {} in one command: the most is {}", items, what,
                   most);
}

void JobSubmit(Call& call) {
  api::Arguments arguments;
  if (!Read(call, arguments)) return;
  Status status = FinishJob(Wire::kResp, arguments);
  if (status) status = Validate(arguments.job, ServiceOf(call).limits(), Now(call));
  if (!status) return call.Fail(status.error());
  SubmitRun& run = call.session.pipeline().Open<SubmitRun>(call, 1);
  run.parts.push_back({.own_id = arguments.job.id});
  run.request.jobs.push_back(std::move(arguments.job));
}

void JobAmend(Call& call) {
  api::Arguments arguments;
  if (!Read(call, arguments)) return;
  const auto amendment = AmendmentOf(Wire::kResp, arguments);
  if (!amendment) return call.Fail(amendment.error());
  Amend(call, *amendment);
}

void JobCancel(Call& call) { AmendAs(call, AmendKind::kCancel); }

void JobFire(Call& call) { AmendAs(call, AmendKind::kFire); }

void JobCount(Call& call) {
  api::Arguments arguments;
  if (!Read(call, arguments)) return;
  const CountEvent event = EventOf(arguments);
  if (const Status valid = Validate(event); !valid) return call.Fail(valid.error());
  call.session.pipeline().Open<CountRun>(call, 1).request.events.push_back(event);
}

const Command kJobMsubmit = {
    .name = "JOB.MSUBMIT",
    .syntax = "topic DELAY ms | AT ms payload [payload ...]",
    .summary = "Stores many jobs that are due at the same time.",
    .args_min = 4,
    .args_max = kAnyNumber,
    .access = auth::Access::kSubmit,
    .writes = true,
    .run = JobMsubmit,
};

}  // namespace tocsin::resp
