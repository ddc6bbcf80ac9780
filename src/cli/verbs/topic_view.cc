#include "cli/verbs/topic_view.h"

#include "cli/text/human_size.h"
#include "cli/text/human_time.h"
#include "cli/verbs/topic_flags.h"

namespace tocsin::cli {
namespace {

void Line(Output& out, std::string_view name, std::string_view value) {
  out.Print("{} {}\n", out.Paint(Colour::kDim, fmt::format("{:<15}", name)), value);
}

std::string SettingText(std::string_view field, const json::value& value) {
  if (value.is_bool()) return value.get_bool() ? "yes" : "no";
  if (value.is_string()) return value.get_string().empty() ? "none" : Printable(value.get_string());
  if (!value.is_int64()) return Printable(json::serialize(value));
  if (value.get_int64() == 0 && field.starts_with("capacity_")) return "no limit";
  if (field.ends_with("_ms")) return ExactDuration(Millis(value.get_int64()));
  if (field.ends_with("bytes")) return ShowSize(value.get_int64());
  return std::to_string(value.get_int64());
}

/// Each setting by the name of its flag.
void PrintSettings(Output& out, const json::object& settings) {
  for (const auto& [name, value] : settings) {
    if (value.is_object()) continue;
    const std::string text = SettingText(name, value);
    Line(out, Printable(FlagNameOf(name)), name == "paused" && text == "yes" ? out.Paint(Colour::kYellow, text) : text);
  }
}

}  // namespace

std::string LatenessOf(const json::object& topic, std::string_view quantile) {
  const json::object& lateness = ObjectOf(topic, "lateness_ms");
  if (IntegerOf(lateness, "count") == 0) return "";
  const json::value* const value = lateness.if_contains(quantile);
  if (value == nullptr || !value->is_number()) return "";
  return fmt::format("{:g}ms", value->to_number<double>());
}

void PrintTopic(Context& context, const Arguments&, const json::object& topic) {
  Output& out = context.out;
  for (const json::object* part : {&topic, &ObjectOf(topic, "delivery"), &ObjectOf(topic, "figures")}) {
    PrintSettings(out, *part);
  }
  if (const std::string p99 = LatenessOf(topic, "p99"); !p99.empty()) {
    Line(out, "lateness",
         fmt::format("p50 {}, p99 {}, max {}", LatenessOf(topic, "p50"), p99, LatenessOf(topic, "max")));
  }
}

void PrintTopics(Context& context, const Arguments&, const json::object& answer) {
  Table table({"TOPIC", ">SCHEDULED", ">READY", ">LEASED", ">DEAD", ">BYTES", ">P99 LATE", "SINK", "PAUSED"});
  for (const json::value& value : ArrayOf(answer, "topics")) {
    if (!value.is_object()) continue;
    const json::object& topic = value.get_object();
    const json::object& figures = ObjectOf(topic, "figures");
    const auto figure = [&](std::string_view name) { return std::to_string(IntegerOf(figures, name)); };
    table.Row({Printable(TextOf(topic, "topic")), figure("scheduled"), figure("ready"), figure("leased"),
               figure("dead"), ShowSize(IntegerOf(figures, "bytes")), LatenessOf(topic, "p99"),
               Printable(TextOf(ObjectOf(topic, "delivery"), "sink")), BoolOf(topic, "paused") ? "paused" : ""});
  }
  if (table.empty()) {
    context.out.Write("no topics yet: the first job submitted to a topic creates it\n");
  } else {
    table.Print(context.out);
  }
}

}  // namespace tocsin::cli
