#include "cli/verbs/topic_view.h"

#include "cli/text/human_size.h"
#include "cli/text/human_time.h"
#include "cli/verbs/delivery_flags.h"

namespace tocsin::cli {
namespace {

std::string Limit(int64_t value, const std::string& shown) { return value == 0 ? "no limit" : shown; }

void Line(Output& out, std::string_view name, std::string_view value) {
  out.Print("{} {}\n", out.Paint(Colour::kDim, fmt::format("{:<15}", name)), value);
}

std::string SettingText(std::string_view field, const json::value& value) {
  if (value.is_bool()) return value.get_bool() ? "yes" : "no";
  if (value.is_int64() && field.ends_with("_ms")) return ExactDuration(Millis(value.get_int64()));
  if (value.is_int64()) return std::to_string(value.get_int64());
  if (!value.is_string() || value.get_string().empty()) return "none";
  return Printable(value.get_string());
}

/// The sink, and each of its settings by the name of its flag.
void PrintDelivery(Output& out, const json::object& delivery) {
  for (const auto& setting : delivery) {
    Line(out, Printable(FlagNameOf(setting.key())), SettingText(setting.key(), setting.value()));
  }
}

void PrintSettings(Output& out, const json::object& topic) {
  const auto number = [&](std::string_view name) { return IntegerOf(topic, name); };
  const auto duration = [&](std::string_view name) { return ExactDuration(Millis(IntegerOf(topic, name))); };
  Line(out, "topic", Printable(TextOf(topic, "topic")));
  Line(out, "paused", BoolOf(topic, "paused") ? out.Paint(Colour::kYellow, "yes") : "no");
  Line(out, "slots", std::to_string(number("slots")));
  Line(out, "capacity-jobs", Limit(number("capacity_jobs"), std::to_string(number("capacity_jobs"))));
  Line(out, "capacity-bytes", Limit(number("capacity_bytes"), ShowSize(number("capacity_bytes"))));
  Line(out, "lease", duration("lease_ms"));
  Line(out, "attempts", std::to_string(number("max_attempts")));
  Line(out, "backoff", duration("backoff_base_ms"));
  Line(out, "backoff-max", duration("backoff_max_ms"));
  Line(out, "count", std::to_string(number("count_limit")));
  Line(out, "retention", duration("retention_ms"));
  PrintDelivery(out, ObjectOf(topic, "delivery"));
}

}  // namespace

std::string LatenessOf(const json::object& topic, std::string_view quantile) {
  const json::object& lateness = ObjectOf(topic, "lateness_ms");
  if (IntegerOf(lateness, "count") == 0) return "";
  const json::value* const value = lateness.if_contains(quantile);
  if (value == nullptr || !value->is_number()) return "";
  return fmt::format("{:g}ms", value->to_number<double>());
}

void PrintTopic(Output& out, const json::object& topic) {
  if (out.json()) {
    out.Json(topic);
    return;
  }
  PrintSettings(out, topic);
  const json::object& figures = ObjectOf(topic, "figures");
  for (const auto& figure : figures) {
    const int64_t value = IntegerOf(figures, figure.key());
    Line(out, Printable(figure.key()), figure.key() == "bytes" ? ShowSize(value) : std::to_string(value));
  }
  if (const std::string p99 = LatenessOf(topic, "p99"); !p99.empty()) {
    Line(out, "lateness",
         fmt::format("p50 {}, p99 {}, max {}", LatenessOf(topic, "p50"), p99, LatenessOf(topic, "max")));
  }
}

}  // namespace tocsin::cli
