#include "frontend/resp/commands/commands.h"
#include "model/names.h"

namespace tocsin::resp {
namespace {

constexpr int64_t kPageMax = 1000;

struct Draft {
  ListRequest request;
  std::string reason;
};

constexpr Option<Draft> kOptions[] = {
    {"STATE", 1,
     [](Draft& d, std::string_view word, Values v) { return PutChoice(d.request.state, word, v[0], kStateNames); }},
    {"LIMIT", 1,
     [](Draft& d, std::string_view word, Values v) { return Put(d.request.limit, Number(word, v[0], 1, kPageMax)); }},
    {"CURSOR", 1,
     [](Draft& d, std::string_view, Values v) -> Status {
       d.request.cursor = v[0];
       return {};
     }},
    {"REASON", 1,
     [](Draft& d, std::string_view, Values v) -> Status {
       d.reason = v[0];
       return {};
     }},
};

void Run(Call& call) {
  Draft draft{.request = {.topic = std::string(call.topic())}, .reason = {}};
  if (const Status status = ReadOptions(draft, call.args.subspan(1), kOptions); !status) {
    return call.Fail(status.error());
  }
  draft.request.limit = std::min(draft.request.limit, ServiceOf(call).limits().batch);
  ServiceOf(call).List(LoopOf(call), std::move(draft.request),
                       call.session.pipeline().Hold(call).Then(
                           [reason = std::move(draft.reason)](Answer& answer, Result<Page> result) mutable {
                             if (!result) return answer.Fail(result.error());
                             // Not by the store: a page may be empty, and the next one not.
                             if (!reason.empty()) KeepWithReason(result->jobs, reason);
                             if (const Status room = answer.MakeRoom(DeliveredBytesMax(result->jobs)); !room) {
                               return answer.Fail(room.error());
                             }
                             Writer writer = answer.writer();
                             writer.Array(2);
                             result->cursor.empty() ? writer.Null() : writer.Bulk(result->cursor);
                             writer.Array(result->jobs.jobs.size());
                             for (const JobView& job : result->jobs.jobs) WriteJob(writer, job);
                             answer.Done();
                           }));
}

}  // namespace

const Command kJobList = {
    .name = "JOB.LIST",
    .syntax = "topic [STATE scheduled|leased|dead|done|cancelled] [LIMIT n] [CURSOR cursor] [REASON text]",
    .summary = "Lists the jobs of a topic that have a state, page by page.",
    .args_min = 1,
    .args_max = 9,
    .access = auth::Access::kTopicAdmin,
    .holds = true,
    .run = Run,
};

}  // namespace tocsin::resp
