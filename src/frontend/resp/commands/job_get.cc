#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

constexpr Option<JobRef> kOptions[] = {{"KEY", 1, [](JobRef& job, std::string_view, Values v) -> Status {
                                          job.key = v[0];
                                          return {};
                                        }}};

void Run(Call& call) {
  JobRef job{.id = call.args[1]};
  if (const Status status = ReadOptions(job, call.args.subspan(2), kOptions); !status) return call.Fail(status.error());
  FindRequest request{.topic = std::string(call.topic()), .jobs = {job}, .bytes = call.session.bytes()};
  ServiceOf(call).Find(LoopOf(call), std::move(request),
                       call.session.pipeline().Hold(call).Then([](Answer& answer, Result<JobBatch> result) mutable {
                         if (!result) return answer.Fail(result.error());
                         if (const Status room = answer.MakeRoom(DeliveredBytesMax(*result)); !room) {
                           return answer.Fail(room.error());
                         }
                         Writer writer = answer.writer();
                         const JobView& found = result->jobs.front();
                         found.uid == 0 ? writer.Null() : WriteJob(writer, found);
                         answer.Done();
                       }));
}

}  // namespace

const Command kJobGet = {
    .name = "JOB.GET",
    .syntax = "topic id [KEY key]",
    .summary = "Shows a job.",
    .args_min = 2,
    .args_max = 4,
    .access = auth::Access::kSubmitOrConsume,
    .holds = true,
    .run = Run,
};

}  // namespace tocsin::resp
