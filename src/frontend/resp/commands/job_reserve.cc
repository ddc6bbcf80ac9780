#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

struct Draft {
  ReserveRequest request;
  const Limits& limits;
};

constexpr Option<Draft> kOptions[] = {
    {"MAX", 1,
     [](Draft& d, std::string_view word, Values v) {
       return Put(d.request.max, Number(word, v[0], 1, static_cast<int64_t>(d.limits.batch)));
     }},
    {"WAIT", 1,
     [](Draft& d, std::string_view word, Values v) {
       return Put(d.request.wait, Number(word, v[0], 0, d.limits.wait_max.count()));
     }},
    {"LEASE", 1,
     [](Draft& d, std::string_view word, Values v) {
       return Put(d.request.lease, Number(word, v[0], 1, d.limits.lease_max.count()));
     }},
};

void Run(Call& call) {
  Draft draft{.request = {.topic = std::string(call.topic())}, .limits = ServiceOf(call).limits()};
  if (const Status status = ReadOptions(draft, call.args.subspan(1), kOptions); !status) {
    return call.Fail(status.error());
  }
  if (call.session.gone()) return Reply(call).Array(0);  // most often as a whole: nobody would settle the jobs
  auto deliver = call.session.pipeline().Hold(call).Then(
      [session = call.session.Share(), topic = draft.request.topic](Answer& answer, Result<JobBatch> result) mutable {
        session->Unpark();
        if (!result) return answer.Fail(result.error());
        Server& server = session->server();
        Status room;
        if (answer.Wanted()) room = answer.MakeRoom(DeliveredBytesMax(*result));
        if (!answer.Wanted() || !room) server.context().service.Release(server.loop(), topic, *result);
        if (!room) return answer.Fail(room.error());
        Writer writer = answer.writer();
        WriteDelivered(writer, *result);
        answer.Done();
      });
  const ReserveId id = ServiceOf(call).Reserve(LoopOf(call), std::move(draft.request), std::move(deliver));
  call.session.Park(id, call.topic());
}

}  // namespace

const Command kJobReserve = {
    .name = "JOB.RESERVE",
    .syntax = "topic [MAX n] [WAIT ms] [LEASE ms]",
    .summary = "Takes jobs that are due, each under a lease; waits for the first one.",
    .args_min = 1,
    .args_max = 7,
    .access = auth::Access::kConsume,
    .holds = true,
    .writes = true,
    .run = Run,
};

}  // namespace tocsin::resp
