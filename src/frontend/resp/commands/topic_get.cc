#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

void Get(Call& call) {
  std::string name(call.topic());
  ServiceOf(call).Topics(LoopOf(call), name,
                         call.session.pipeline().Hold(call).Then([name](Answer& answer, Result<Report> result) mutable {
                           if (!result) return answer.Fail(result.error());
                           if (result->topics.empty()) return answer.Fail(NoSuchTopic(name).error());
                           Writer writer = answer.writer();
                           WriteTopic(writer, result->topics.front());
                           answer.Done();
                         }));
}

void List(Call& call) {
  std::string prefix = call.session.grant() != nullptr ? call.session.grant()->prefix : std::string();
  ServiceOf(call).Topics(LoopOf(call), "",
                         call.session.pipeline().Hold(call).Then(
                             [prefix = std::move(prefix)](Answer& answer, Result<Report> result) mutable {
                               if (!result) return answer.Fail(result.error());
                               std::erase_if(result->topics, [&](const TopicReport& topic) {
                                 return !topic.figures.topic.name.starts_with(prefix);
                               });
                               size_t bytes = 0;
                               for (const TopicReport& topic : result->topics)
                                 bytes += TopicBytesMax(topic.figures.topic);
                               if (const Status room = answer.MakeRoom(bytes); !room) {
                                 return answer.Fail(room.error());
                               }
                               Writer writer = answer.writer();
                               writer.Array(result->topics.size());
                               for (const TopicReport& topic : result->topics) WriteTopic(writer, topic);
                               answer.Done();
                             }));
}

}  // namespace

const Command kTopicGet = {
    .name = "TOPIC.GET",
    .syntax = "topic",
    .summary = "Shows a topic's settings and figures.",
    .args_min = 1,
    .args_max = 1,
    .access = auth::Access::kTopicAdmin,
    .holds = true,
    .run = Get,
};

const Command kTopicList = {
    .name = "TOPIC.LIST",
    .syntax = "",
    .summary = "Shows all topics with their settings and figures.",
    .access = auth::Access::kListTopics,
    .holds = true,
    .run = List,
};

}  // namespace tocsin::resp
