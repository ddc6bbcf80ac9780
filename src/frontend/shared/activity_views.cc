#include "frontend/shared/activity_views.h"

#include <algorithm>

#include "frontend/shared/views.h"

namespace tocsin::shared {
namespace {

constexpr size_t kRates = kRateNames.size();

void ShowValues(ValueWriter& out, const FigureValues& values) {
  out.Object(values.size());
  for (size_t i = 0; i < values.size(); ++i) out.Member(kFigureColumns[i].name, values[i]);
  out.EndObject();
}

/// A second.
void ShowRates(ValueWriter& out, const FigureValues& added, double seconds) {
  out.Object(kRates);
  for (const std::string_view name : kRateNames) {
    out.Name(name);
    out.Real(seconds > 0 ? static_cast<double>(added[ColumnOf(name)]) / seconds : 0);
  }
  out.EndObject();
}

/// Null if it is below 0.
void ShowAge(ValueWriter& out, Millis age) {
  out.Name("oldest_age_ms");
  age < Millis(0) ? out.Null() : out.Number(age.count());
}

void ShowConservation(ValueWriter& out, const FigureValues& values) {
  TopicFigures figures;
  for (size_t i = 0; i < values.size(); ++i) figures.*kFigureColumns[i].value = values[i];
  const auto in = static_cast<int64_t>(figures.recovered + figures.accepted);
  const int64_t difference = ConservationDifference(figures);
  out.Name("conservation");
  out.Object(3);
  out.Member("in", in);
  out.Member("out", in - difference);
  out.Member("difference", difference);
  out.EndObject();
}

struct ShowData {
  ValueWriter& out;
  const Event& event;
  const EventView& view;

  void operator()(std::monostate) const {
    out.Object(1);
    out.Member("name", std::string_view(event.topic));
    out.EndObject();
  }

  void operator()(const FiguresEvent& figures) const {
    out.Object(8);
    out.Member("now_ms", ToMs(event.at));
    out.Name("seconds");
    out.Real(figures.seconds);
    out.Member("topics", uint64_t{figures.topics});
    out.Name("totals");
    ShowValues(out, figures.activity.values);
    ShowConservation(out, figures.activity.values);
    out.Name("rates");
    ShowRates(out, figures.activity.added, figures.seconds);
    out.Name("lateness_ms");
    Show(out, figures.lateness);
    ShowAge(out, figures.activity.oldest_age);
    out.EndObject();
  }

  void operator()(const TopicsEvent& batch) const {
    const std::vector<const TopicActivity*> shown = view.interest.Of(batch);
    const bool named = !view.interest.topics.empty();
    const auto busiest = batch.busiest.find(view.interest.prefix);
    const size_t all = named || busiest == batch.busiest.end() ? shown.size() : busiest->second.changed;
    out.Object(4);
    out.Member("now_ms", ToMs(event.at));
    out.Name("seconds");
    out.Real(batch.seconds);
    out.Name("topics");
    out.Array(shown.size());
    for (const TopicActivity* const each : shown) ShowTopic(*each, batch.seconds);
    out.EndArray();
    out.Member("more", uint64_t{all - std::min(all, shown.size())});
    out.EndObject();
  }

  void ShowTopic(const TopicActivity& topic, double seconds) const {
    out.Object(5);
    out.Member("name", std::string_view(topic.topic));
    out.Member("paused", topic.paused);
    out.Name("figures");
    ShowValues(out, topic.activity.values);
    out.Name("rates");
    ShowRates(out, topic.activity.added, seconds);
    ShowAge(out, topic.activity.oldest_age);
    out.EndObject();
  }

  void operator()(const TopicChangedEvent& changed) const {
    out.Object(2);
    out.Member("created", changed.created);
    out.Name("topic");
    Show(out, changed.topic, view.whole_urls);
    out.EndObject();
  }

  void operator()(const OperationReport& report) const { Show(out, report, false); }

  void operator()(const EventFields& fields) const {
    out.Object(fields.size());
    for (const EventField& field : fields) {
      out.Name(field.name);
      if (const auto* const text = std::get_if<std::string>(&field.value)) out.Text(*text);
      if (const auto* const number = std::get_if<int64_t>(&field.value)) out.Number(*number);
      if (const auto* const flag = std::get_if<bool>(&field.value)) out.Flag(*flag);
    }
    out.EndObject();
  }
};

/// A column of the history; null for what is below 0.
void ShowColumn(ValueWriter& out, const HistoryReport& report, std::string_view name,
                const std::function<void(const HistoryPoint&)>& show) {
  out.Name(name);
  out.Array(report.points.size());
  for (const HistoryPoint& point : report.points) show(point);
  out.EndArray();
}

}  // namespace

void Show(ValueWriter& out, const Event& event, const EventView& view) {
  std::visit(ShowData{out, event, view}, event.data);
}

void Show(ValueWriter& out, const HistoryReport& report) {
  const auto real = [&out](double value) { value < 0 ? out.Null() : out.Real(value); };
  out.Object(3);
  out.Member("step_ms", int64_t{report.step.count()});
  ShowColumn(out, report, "at_ms", [&](const HistoryPoint& point) { out.Number(ToMs(point.at)); });
  out.Name("series");
  out.Object(kRates + kGaugeNames.size() + 3);
  for (size_t i = 0; i < kRates; ++i) {
    ShowColumn(out, report, kRateNames[i], [&](const HistoryPoint& point) { real(double{point.rates[i]}); });
  }
  for (size_t i = 0; i < kGaugeNames.size(); ++i) {
    ShowColumn(out, report, kGaugeNames[i],
               [&](const HistoryPoint& point) { out.Number(static_cast<int64_t>(point.gauges[i])); });
  }
  ShowColumn(out, report, "lateness_p50_ms", [&](const HistoryPoint& point) { real(double{point.p50_ms}); });
  ShowColumn(out, report, "lateness_p99_ms", [&](const HistoryPoint& point) { real(double{point.p99_ms}); });
  ShowColumn(out, report, "oldest_age_ms", [&](const HistoryPoint& point) {
    point.oldest_age_ms < 0 ? out.Null() : out.Number(point.oldest_age_ms);
  });
  out.EndObject();
  out.EndObject();
}

void Show(ValueWriter& out, const metrics::Histogram::Snapshot& lateness) {
  using metrics::Histogram;
  const std::pair<std::string_view, double> quantiles[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
  out.Object(2 + std::size(quantiles));
  out.Member("count", lateness.count);
  for (const auto& [name, quantile] : quantiles) {
    out.Name(name);
    out.Real(lateness.Quantile(quantile) * 1e3);
  }
  out.Name("buckets");
  out.Array(static_cast<size_t>(std::ranges::count_if(lateness.buckets, [](uint64_t count) { return count > 0; })));
  for (size_t i = 0; i < lateness.buckets.size(); ++i) {
    if (lateness.buckets[i] == 0) continue;
    out.Object(2);
    out.Name("le_ms");
    out.Real(static_cast<double>(Histogram::BoundOf(i)) / 1e3);
    out.Member("count", lateness.buckets[i]);
    out.EndObject();
  }
  out.EndArray();
  out.EndObject();
}

void Show(ValueWriter& out, const DeliveryReport& report) {
  out.Object(8);
  out.Member("topic", std::string_view(report.topic));
  out.Member("sink", std::string_view(report.sink));
  out.Member("target", std::string_view(report.target));
  out.Member("state", NameOf(report.state));
  out.Member("in_flight", report.in_flight);
  out.Member("failures", report.failures);
  out.Name("last_error");
  report.last_error.empty() ? out.Null() : out.Text(report.last_error);
  out.Name("last_error_ms");
  report.last_error.empty() ? out.Null() : out.Number(ToMs(report.last_error_at));
  out.EndObject();
}

size_t BytesMax(const HistoryReport& report) {
  constexpr size_t kColumns = kRates + kGaugeNames.size() + 4;
  constexpr size_t kNumberMax = 24;
  constexpr size_t kFrame = 1024;
  return kFrame + report.points.size() * kColumns * kNumberMax;
}

size_t BytesMax(const DeliveriesPage& page) {
  constexpr size_t kFixed = 256;
  size_t bytes = kFixed;
  for (const DeliveryReport& each : page.deliveries) {
    bytes += kFixed + each.topic.size() + 2 * (each.target.size() + each.last_error.size());
  }
  return bytes;
}

}  // namespace tocsin::shared
