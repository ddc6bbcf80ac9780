#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

void Pause(Call& call, bool paused) {
  ChangeTopic(call, {std::string(call.topic()), TopicChange().Set("paused", paused ? 1 : 0), IfUnknown::kRefuse});
}

}  // namespace

const Command kTopicPause = {
    .name = "TOPIC.PAUSE",
    .syntax = "topic",
    .summary = "Delivers nothing of a topic any more; everything else works.",
    .args_min = 1,
    .args_max = 1,
    .access = auth::Access::kTopicAdmin,
    .holds = true,
    .writes = true,
    .run = [](Call& call) { Pause(call, true); },
};

const Command kTopicResume = {
    .name = "TOPIC.RESUME",
    .syntax = "topic",
    .summary = "Delivers the jobs of a paused topic again.",
    .args_min = 1,
    .args_max = 1,
    .access = auth::Access::kTopicAdmin,
    .holds = true,
    .writes = true,
    .run = [](Call& call) { Pause(call, false); },
};

}  // namespace tocsin::resp
