#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

constexpr Option<SweepKind> kOptions[] = {{"DEAD", 0, [](SweepKind& kind, std::string_view, Values) -> Status {
                                             kind = SweepKind::kPurgeDead;
                                             return {};
                                           }}};

void Run(Call& call) {
  SweepKind kind = SweepKind::kPurge;
  if (const Status status = ReadOptions(kind, call.args.subspan(1), kOptions); !status)
    return call.Fail(status.error());
  Sweep(call, kind);
}

}  // namespace

const Command kTopicPurge = {
    .name = "TOPIC.PURGE",
    .syntax = "topic [DEAD]",
    .summary = "Removes all jobs of a topic that no consumer holds, or its dead letters alone.",
    .args_min = 1,
    .args_max = 2,
    .access = auth::Access::kTopicAdmin,
    .holds = true,
    .writes = true,
    .run = Run,
};

}  // namespace tocsin::resp
