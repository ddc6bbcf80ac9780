#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

void Run(Call& call) {
  ServiceOf(call).Probe(LoopOf(call), std::string(call.topic()),
                        call.session.pipeline().Hold(call).Then([](Answer& answer, Result<Probed> result) mutable {
                          if (!result) return answer.Fail(result.error());
                          Writer writer = answer.writer();
                          WriteProbed(writer, *result);
                          answer.Done();
                        }));
}

}  // namespace

const Command kTopicTest = {
    .name = "TOPIC.TEST",
    .syntax = "topic",
    .summary = "Sends one probe to the receiver of a topic that pushes, and says what became of it.",
    .args_min = 1,
    .args_max = 1,
    .access = auth::Access::kTopicAdmin,
    .holds = true,
    .run = Run,
};

}  // namespace tocsin::resp
