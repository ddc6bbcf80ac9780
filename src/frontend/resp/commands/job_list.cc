#include "frontend/resp/commands/commands.h"
#include "model/names.h"

namespace tocsin::resp {
namespace {

constexpr int64_t kPageMax = 1000;

constexpr Option<ListRequest> kOptions[] = {
    {"STATE", 1,
     [](ListRequest& r, std::string_view word, Values v) { return PutChoice(r.state, word, v[0], kStateNames); }},
    {"LIMIT", 1,
     [](ListRequest& r, std::string_view word, Values v) { return Put(r.limit, Number(word, v[0], 1, kPageMax)); }},
    {"CURSOR", 1,
     [](ListRequest& r, std::string_view, Values v) -> Status {
       r.cursor = v[0];
       return {};
     }},
};

void Run(Call& call) {
  ListRequest request{.topic = std::string(call.topic())};
  if (const Status status = ReadOptions(request, call.args.subspan(1), kOptions); !status) {
    return call.Fail(status.error());
  }
  request.limit = std::min(request.limit, ServiceOf(call).limits().batch);
  ServiceOf(call).List(LoopOf(call), std::move(request),
                       [answer = call.session.pipeline().Hold(call)](Result<Page> result) mutable {
                         if (!result) return answer.Fail(result.error());
                         if (const Status room = answer.MakeRoom(DeliveredBytesMax(result->jobs)); !room) {
                           return answer.Fail(room.error());
                         }
                         Writer writer = answer.writer();
                         writer.Array(2);
                         result->cursor.empty() ? writer.Null() : writer.Bulk(result->cursor);
                         writer.Array(result->jobs.jobs.size());
                         for (const JobView& job : result->jobs.jobs) WriteJob(writer, job);
                         answer.Done();
                       });
}

}  // namespace

const Command kJobList = {
    .name = "JOB.LIST",
    .syntax = "topic [STATE scheduled|leased|dead|done|cancelled] [LIMIT n] [CURSOR cursor]",
    .summary = "Lists the jobs of a topic that have a state, page by page.",
    .args_min = 1,
    .args_max = 7,
    .access = auth::Access::kTopicAdmin,
    .holds = true,
    .run = Run,
};

}  // namespace tocsin::resp
