#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

struct Draft {
  Amendment amendment;
  When when;
};

Status TakeKey(Draft& draft, std::string_view, Values values) {
  draft.amendment.job.key = values[0];
  return {};
}

constexpr Option<Draft> kKeyAlone[] = {{"KEY", 1, TakeKey}};
constexpr Option<Draft> kAmendOptions[] = {
    {"KEY", 1, TakeKey},
    {"DELAY", 1, [](Draft& d, std::string_view word, Values v) { return TakeDelay(d.when, word, v); }},
    {"AT", 1, [](Draft& d, std::string_view word, Values v) { return TakeAt(d.when, word, v); }},
    {"PAYLOAD", 1,
     [](Draft& d, std::string_view, Values v) -> Status {
       d.amendment.payload = v[0];
       return {};
     }},
};

void AmendAs(Call& call, AmendKind kind) {
  Draft draft{.amendment = {.job = {.id = call.args[1]}, .kind = kind}};
  if (const Status status = ReadOptions(draft, call.args.subspan(2), kKeyAlone); !status) {
    return call.Fail(status.error());
  }
  Amend(call, draft.amendment);
}

void AmendContent(Call& call) {
  Draft draft{.amendment = {.job = {.id = call.args[1]}}};
  if (const Status status = ReadOptions(draft, call.args.subspan(2), kAmendOptions); !status) {
    return call.Fail(status.error());
  }
  const bool reschedules = draft.when.delay || draft.when.due;
  if (!reschedules && !draft.amendment.payload) {
    return call.Fail({Code::kInvalidArgument, "nothing to change: give DELAY, AT or PAYLOAD", {}});
  }
  draft.amendment.kind = reschedules ? AmendKind::kReschedule : AmendKind::kPayload;
  SetWhen(draft.amendment, draft.when);
  Amend(call, draft.amendment);
}

}  // namespace

const Command kJobCancel = {
    .name = "JOB.CANCEL",
    .syntax = "topic id [KEY key]",
    .summary = "Removes a job before it is delivered, and says whether that won.",
    .args_min = 2,
    .args_max = 4,
    .access = auth::Access::kSubmit,
    .writes = true,
    .run = [](Call& call) { AmendAs(call, AmendKind::kCancel); },
};

const Command kJobAmend = {
    .name = "JOB.AMEND",
    .syntax = "topic id [KEY key] [DELAY ms | AT ms] [PAYLOAD payload]",
    .summary = "Changes when a job is due, what it carries, or both in one step.",
    .args_min = 2,
    .args_max = 8,
    .access = auth::Access::kSubmit,
    .writes = true,
    .run = AmendContent,
};

const Command kJobFire = {
    .name = "JOB.FIRE",
    .syntax = "topic id [KEY key]",
    .summary = "Makes a job due now.",
    .args_min = 2,
    .args_max = 4,
    .access = auth::Access::kSubmit,
    .writes = true,
    .run = [](Call& call) { AmendAs(call, AmendKind::kFire); },
};

}  // namespace tocsin::resp
