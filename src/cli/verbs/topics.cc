// `tocsin topics` and `tocsin topic get`.
#include "cli/text/human_size.h"
#include "cli/verbs/parts.h"
#include "cli/verbs/topic_view.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

Result<int> RunAll(Context& context, const Arguments&) {
  const auto reply = context.api.Get("/v1/topics");
  if (!reply) return std::unexpected(reply.error());
  Table table({"TOPIC", ">SCHEDULED", ">READY", ">LEASED", ">DEAD", ">BYTES", ">P99 LATE", "SINK", "PAUSED"});
  for (const json::value& value : ArrayOf(*reply, "topics")) {
    if (!value.is_object()) continue;
    const json::object& topic = value.get_object();
    if (context.out.json()) {
      context.out.Json(topic);
      continue;
    }
    const json::object& figures = ObjectOf(topic, "figures");
    const auto figure = [&](std::string_view name) { return std::to_string(IntegerOf(figures, name)); };
    table.Row({Printable(TextOf(topic, "topic")), figure("scheduled"), figure("ready"), figure("leased"),
               figure("dead"), ShowSize(IntegerOf(figures, "bytes")), LatenessOf(topic, "p99"),
               Printable(TextOf(ObjectOf(topic, "delivery"), "sink")), BoolOf(topic, "paused") ? "paused" : ""});
  }
  if (context.out.json()) return kExitOk;
  if (table.empty()) {
    context.out.Write("no topics yet: the first job submitted to a topic creates it\n");
  } else {
    table.Print(context.out);
  }
  return kExitOk;
}

Result<int> RunOne(Context& context, const Arguments& arguments) {
  const auto reply = context.api.Get(TopicPath(*arguments.Text("TOPIC")));
  if (!reply) return std::unexpected(reply.error());
  PrintTopic(context.out, *reply);
  return kExitOk;
}

}  // namespace

Command Topics() {
  return {
      .name = "topics",
      .summary = "shows all topics and how full they are",
      .examples = {{"topics", "a line for each topic"}},
      .run = RunAll,
  };
}

Command TopicGet() {
  return {
      .name = "topic get",
      .summary = "shows a topic's settings and figures",
      .positionals = {kTopic},
      .examples = {{"topic get orders", "its leases, attempts and limits, and what has happened so far"}},
      .no = "there is no such topic",
      .run = RunOne,
  };
}

}  // namespace tocsin::cli
