// Topics and figures as JSON.
#include "core/figures.h"
#include "frontend/http/encode.h"
#include "frontend/http/text.h"

namespace tocsin::http {
namespace {

void AppendSetting(std::string& out, const Delivery& delivery, const DeliveryField& field) {
  out += ',';
  AppendString(out, field.name);
  out += ':';
  if (field.kind == DeliveryFieldKind::kText) return AppendString(out, delivery.Text(field.name));
  out += delivery.Text(field.name);  // digits, or true or false
}

/// With what was not set too: the defaults are what holds.
void AppendDelivery(std::string& out, const Delivery& delivery) {
  out += "{\"sink\":";
  AppendString(out, delivery.Pushes() ? delivery.sink : "pull");
  if (delivery.Pushes()) {
    for (const DeliveryField* field : DeliveryFieldsOf(delivery.sink)) AppendSetting(out, delivery, *field);
  }
  out += '}';
}

/// Without the closing brace.
void AppendSettings(std::string& out, const Topic& topic) {
  out += "{\"topic\":";
  AppendString(out, topic.name);
  for (const TopicSetting& setting : TopicSettings()) {
    const uint64_t value = setting.get(topic);
    fmt::format_to(std::back_inserter(out), ",\"{}\":", setting.name);
    if (setting.kind == SettingKind::kFlag) {
      out += value != 0 ? "true" : "false";
    } else {
      AppendInteger(out, static_cast<int64_t>(value));
    }
  }
  out += ",\"delivery\":";
  AppendDelivery(out, topic.delivery);
}

void AppendFigures(std::string& out, const TopicFigures& figures) {
  out += '{';
  for (const FigureColumn& column : kFigureColumns) {
    if (out.back() != '{') out += ',';
    AppendString(out, column.name);
    out += ':';
    AppendInteger(out, static_cast<int64_t>(figures.*column.value));
  }
  out += '}';
}

void AppendLateness(std::string& out, const Lateness& lateness) {
  fmt::format_to(std::back_inserter(out),
                 "{{\"count\":{},\"p50\":{:.3f},\"p99\":{:.3f},\"p999\":{:.3f},\"max\":{:.3f}}}", lateness.count,
                 lateness.p50 * 1e3, lateness.p99 * 1e3, lateness.p999 * 1e3, lateness.max * 1e3);
}

void AppendReport(std::string& out, const TopicReport& report) {
  AppendSettings(out, report.figures.topic);
  out += ",\"figures\":";
  AppendFigures(out, report.figures);
  out += ",\"lateness_ms\":";
  AppendLateness(out, report.lateness);
  out += '}';
}

}  // namespace

std::string EncodeTopic(const Topic& topic) {
  std::string out;
  AppendSettings(out, topic);
  out += '}';
  return out;
}

std::string EncodeTopic(const TopicReport& report) {
  std::string out;
  AppendReport(out, report);
  return out;
}

std::string EncodeProbed(const Probed& probed) {
  const Delivered& delivered = probed.delivered;
  std::string out = "{\"outcome\":";
  AppendString(out, kDeliverOutcomeNames[static_cast<size_t>(delivered.outcome)]);
  if (!delivered.reason.empty()) {
    out += ",\"reason\":";
    AppendString(out, IsUtf8(delivered.reason) ? std::string_view(delivered.reason) : "not valid UTF-8");
  }
  out += ",\"took_ms\":";
  AppendInteger(out, probed.took.count());
  out += '}';
  return out;
}

std::string EncodeTopics(const Report& report, std::string_view prefix) {
  std::string out = "{\"topics\":[";
  for (const TopicReport& topic : report.topics) {
    if (!topic.figures.topic.name.starts_with(prefix)) continue;
    if (out.back() != '[') out += ',';
    AppendReport(out, topic);
  }
  out += "]}";
  return out;
}

std::string EncodeStats(const NodeFacts& node, const Report& report) {
  TopicFigures totals;
  for (const TopicReport& topic : report.topics) Add(totals, topic.figures);
  std::string out = "{\"version\":";
  AppendString(out, node.version);
  fmt::format_to(std::back_inserter(out),
                 ",\"now_ms\":{},\"uptime_ms\":{},\"shards\":{},\"connections\":{},\"topics\":{},\"totals\":",
                 node.now_ms, node.uptime_ms, node.shards, node.connections, report.topics.size());
  AppendFigures(out, totals);
  const uint64_t in = totals.recovered + totals.accepted;
  const int64_t difference = ConservationDifference(totals);
  fmt::format_to(std::back_inserter(out), ",\"conservation\":{{\"in\":{},\"out\":{},\"difference\":{}}}", in,
                 static_cast<int64_t>(in) - difference, difference);
  out += ",\"lateness_ms\":";
  AppendLateness(out, report.lateness);
  out += '}';
  return out;
}

}  // namespace tocsin::http
