#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {

const Command kJobRedrive = {
    .name = "JOB.REDRIVE",
    .syntax = "topic",
    .summary = "Makes all dead letters of a topic due again, with all their attempts.",
    .args_min = 1,
    .args_max = 1,
    .access = auth::Access::kTopicAdmin,
    .holds = true,
    .writes = true,
    .run = [](Call& call) { Sweep(call, SweepKind::kRedrive); },
};

}  // namespace tocsin::resp
