#include "server/alert_body.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/chrono.h>

#include "frontend/http/json_writer.h"

namespace tocsin {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

constexpr std::string_view kNoTime = "0001-01-01T00:00:00Z";  // Alertmanager's, of an alert that fires

void Write(http::JsonWriter& out, std::string_view name, const Labels& texts) {
  out.Name(name);
  out.Object(texts.size());
  for (const auto& [label, value] : texts) out.Member(label, std::string_view(value));
  out.EndObject();
}

/// Keeps those that `other` has too, with the same values.
void KeepCommon(Labels& common, const Labels& other) {
  std::erase_if(common, [&](const auto& label) { return std::ranges::find(other, label) == other.end(); });
}

Labels AnnotationsOf(const Alert& alert) { return {{"summary", SummaryOf(alert.condition)}}; }

void Write(http::JsonWriter& out, const Alert& alert, const Labels& labels, std::string_view url) {
  const bool firing = alert.state == AlertState::kFiring;
  out.Object(7);
  out.Member("status", kAlertStateNames[static_cast<size_t>(alert.state)]);
  Write(out, "labels", labels);
  Write(out, "annotations", AnnotationsOf(alert));
  out.Member("startsAt", std::string_view(AlertTime(alert.starts_at)));
  out.Member("endsAt", firing ? kNoTime : std::string_view(AlertTime(alert.ends_at)));
  out.Member("generatorURL", std::string_view(fmt::format("{}/v1/alerts", url)));
  out.Member("fingerprint", std::string_view(FingerprintOf(labels)));
  out.EndObject();
}

}  // namespace

std::string AlertTime(Time time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", second, (time - second).count());
}

std::string AlertBody(const AlertOrigin& origin, std::span<const Alert> alerts, std::string_view url) {
  std::vector<Labels> labels;
  for (const Alert& alert : alerts) labels.push_back(origin.LabelsOf(alert));
  Labels common = labels.front();
  Labels annotations = AnnotationsOf(alerts.front());
  for (size_t i = 1; i < alerts.size(); ++i) {
    KeepCommon(common, labels[i]);
    KeepCommon(annotations, AnnotationsOf(alerts[i]));
  }
  const Labels group{origin.cluster.empty() ? std::pair<std::string_view, std::string>("instance", origin.instance)
                                            : std::pair<std::string_view, std::string>("cluster", origin.cluster)};
  const bool firing = std::ranges::find(alerts, AlertState::kFiring, &Alert::state) != alerts.end();
  http::JsonWriter out;
  out.Object(10);
  out.Member("version", std::string_view("4"));
  out.Member("groupKey", std::string_view(fmt::format("{{}}/{{instance=\"{}\"}}:{{{}=\"{}\"}}", origin.instance,
                                                      group.front().first, group.front().second)));
  out.Member("truncatedAlerts", int64_t{0});
  out.Member("status", kAlertStateNames[static_cast<size_t>(firing ? AlertState::kFiring : AlertState::kResolved)]);
  out.Member("receiver", std::string_view("tocsin"));
  Write(out, "groupLabels", group);
  Write(out, "commonLabels", common);
  Write(out, "commonAnnotations", annotations);
  out.Member("externalURL", url);
  out.Name("alerts");
  out.Array(alerts.size());
  for (size_t i = 0; i < alerts.size(); ++i) Write(out, alerts[i], labels[i], url);
  out.EndArray();
  out.EndObject();
  return out.Take();
}

}  // namespace tocsin
