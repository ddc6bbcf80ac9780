#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

void Run(Call& call) {
  call.session.server().context().node.cluster->Describe(
      LoopOf(call), call.session.pipeline().Hold(call).Then([](Answer& answer, Result<ClusterReport> result) mutable {
        if (!result) return answer.Fail(result.error());
        Writer writer = answer.writer();
        WriteCluster(writer, *result);
        answer.Done();
      }));
}

}  // namespace

// Not CLUSTER: clients of Redis would take this for a Redis Cluster.
const Command kNodes = {
    .name = "NODES",
    .syntax = "",
    .summary = "Shows the nodes that share the store, and what each looks after.",
    .access = auth::Access::kNodeAdmin,
    .holds = true,
    .run = Run,
};

}  // namespace tocsin::resp
