#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

void Run(Call& call) {
  ServiceOf(call).DropTopic(LoopOf(call), std::string(call.topic()),
                            call.session.pipeline().Hold(call).Then([](Answer& answer, Result<void> result) mutable {
                              if (!result) return answer.Fail(result.error());
                              answer.writer().Simple("OK");
                              answer.Done();
                            }));
}

}  // namespace

const Command kTopicDrop = {
    .name = "TOPIC.DROP",
    .syntax = "topic",
    .summary = "Removes a topic with all its jobs.",
    .args_min = 1,
    .args_max = 1,
    .access = auth::Access::kTopicAdmin,
    .holds = true,
    .writes = true,
    .run = Run,
};

}  // namespace tocsin::resp
