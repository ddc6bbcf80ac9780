#include "server/log_events.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

namespace tocsin {
namespace {

/// What happens to nodes: the name of a line, and what the event says.
constexpr std::pair<std::string_view, std::string_view> kOfNodes[] = {
    {"node_joined", "joined"}, {"node_left", "left"}, {"rebalance", "rebalance"}};

/// Empty if there is no such text.
std::string_view TextOf(LogFields fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &LogField::name);
  const auto* const text = found == fields.end() ? nullptr : std::get_if<std::string_view>(&found->value);
  return text == nullptr ? std::string_view() : *text;
}

/// What a field says, to be kept.
std::string Kept(std::string_view text) { return std::string(text); }
int64_t Kept(int64_t number) { return number; }
bool Kept(bool flag) { return flag; }

void Add(EventFields& told, LogFields fields) {
  for (const LogField& each : fields) {
    std::visit([&](const auto& value) { told.push_back({std::string(each.name), Kept(value)}); }, each.value);
  }
}

}  // namespace

void PublishLogEvent(EventHub& events, std::string_view event, LogFields fields) {
  const auto* const of_nodes =
      std::ranges::find(kOfNodes, event, &std::pair<std::string_view, std::string_view>::first);
  if (of_nodes != std::end(kOfNodes)) {
    EventFields told{{"what", std::string(of_nodes->second)}};
    Add(told, fields);
    return events.Publish(EventKind::kNode, {}, std::move(told));
  }
  if (TextOf(fields, "state").empty()) return;  // nothing begins or ends
  const bool alert = event == "alert";
  EventFields told;
  if (!alert) told.push_back({"event", std::string(event)});
  Add(told, fields);
  // What is of one topic is for those who may see the topic.
  events.Publish(alert ? EventKind::kAlert : EventKind::kLog, std::string(TextOf(fields, "topic")), std::move(told));
}

}  // namespace tocsin
