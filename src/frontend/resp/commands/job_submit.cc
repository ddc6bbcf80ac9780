#include "core/validate.h"
#include "frontend/resp/commands/commands.h"
#include "model/names.h"

namespace tocsin::resp {
namespace {

struct Draft {
  const Limits& limits;
  NewJob job = {};
  When when = {};
};

Status SetConflict(Draft& draft, OnConflict what) {
  if (draft.job.on_conflict != OnConflict::kReject) {
    return FailField(Code::kInvalidArgument, "KEEP", "REPLACE and KEEP contradict each other: give one of them");
  }
  draft.job.on_conflict = what;
  return {};
}

Status TakeText(std::string_view& to, std::string_view word, Values values) {
  if (values[0].empty()) return FailField(Code::kInvalidArgument, std::string(word), "{} is empty", word);
  to = values[0];
  return {};
}

constexpr Option<Draft> kOptions[] = {
    {"DELAY", 1, [](Draft& d, std::string_view word, Values v) { return TakeDelay(d.when, word, v); }},
    {"ID", 1, [](Draft& d, std::string_view word, Values v) { return TakeText(d.job.id, word, v); }},
    {"KEY", 1, [](Draft& d, std::string_view word, Values v) { return TakeText(d.job.key, word, v); }},
    {"AT", 1, [](Draft& d, std::string_view word, Values v) { return TakeAt(d.when, word, v); }},
    {"COUNT", 1,
     [](Draft& d, std::string_view word, Values v) { return Put(d.job.count, Number(word, v[0], 1, kCountMax)); }},
    {"TRIGGER", 1,
     [](Draft& d, std::string_view word, Values v) { return PutChoice(d.job.trigger, word, v[0], kTriggerNames); }},
    {"ATTEMPTS", 1,
     [](Draft& d, std::string_view word, Values v) {
       return Put(d.job.max_attempts, Number(word, v[0], 1, kAttemptsMax));
     }},
    {"REPLACE", 0, [](Draft& d, std::string_view, Values) { return SetConflict(d, OnConflict::kReplace); }},
    {"KEEP", 0, [](Draft& d, std::string_view, Values) { return SetConflict(d, OnConflict::kKeep); }},
    {"HEADER", 2,
     [](Draft& d, std::string_view word, Values v) -> Status {
       if (d.job.headers.size() == d.limits.headers) {
         return FailField(Code::kTooLarge, std::string(word), "more than {} headers", d.limits.headers);
       }
       for (const HeaderView& header : d.job.headers) {
         if (header.name != v[0]) continue;
         return FailField(Code::kInvalidArgument, std::string(word), "HEADER {} is given twice", Shown(v[0]));
       }
       d.job.headers.push_back({v[0], v[1]});
       return {};
     },
     true},
};

void Run(Call& call) {
  Draft draft{.limits = ServiceOf(call).limits()};
  draft.job.payload = call.args[1];
  if (const Status status = ReadOptions(draft, call.args.subspan(2), kOptions); !status) {
    return call.Fail(status.error());
  }
  if (draft.job.trigger == Trigger::kEither && !draft.when.delay && !draft.when.due) {
    return call.Fail({Code::kInvalidArgument, "TRIGGER either needs DELAY or AT as well", "DELAY"});
  }
  SetWhen(draft.job, draft.when);
  const Server& server = call.session.server();
  const Status valid = Validate(draft.job, server.context().service.limits(), server.context().clock.Now());
  if (!valid) return call.Fail(valid.error());
  SubmitRun& run = call.session.pipeline().Open<SubmitRun>(call, 1);
  run.parts.push_back({.own_id = draft.job.id});
  run.request.jobs.push_back(std::move(draft.job));
}

}  // namespace

const Command kJobSubmit = {
    .name = "JOB.SUBMIT",
    .syntax =
        "topic payload [ID id] [KEY key] [DELAY ms | AT ms] [COUNT n] [TRIGGER time|count|either] [ATTEMPTS n] "
        "[REPLACE | KEEP] [HEADER name value ...]",
    .summary = "Stores a job, to be delivered when it is due.",
    .args_min = 2,
    .args_max = kAnyNumber,
    .access = auth::Access::kSubmit,
    .writes = true,
    .run = Run,
};

}  // namespace tocsin::resp
