#include "core/validate.h"
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

constexpr Option<CountEvent> kOptions[] = {
    {"BY", 1,
     [](CountEvent& e, std::string_view word, Values v) { return Put(e.by, Number(word, v[0], 1, kCountMax)); }},
    {"KEY", 1,
     [](CountEvent& e, std::string_view, Values v) -> Status {
       e.job.key = v[0];
       return {};
     }},
};

void Run(Call& call) {
  CountEvent event{.job = {.id = call.args[1]}, .event = call.args[2]};
  if (const Status status = ReadOptions(event, call.args.subspan(3), kOptions); !status) {
    return call.Fail(status.error());
  }
  if (const Status valid = Validate(event); !valid) return call.Fail(valid.error());
  call.session.pipeline().Open<CountRun>(call, 1).request.events.push_back(event);
}

}  // namespace

const Command kJobCount = {
    .name = "JOB.COUNT",
    .syntax = "topic id event [BY n] [KEY key]",
    .summary = "Counts an event, once, for a job that waits for some.",
    .args_min = 3,
    .args_max = 7,
    .access = auth::Access::kSubmit,
    .writes = true,
    .run = Run,
};

}  // namespace tocsin::resp
