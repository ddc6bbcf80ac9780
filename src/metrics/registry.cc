#include "metrics/registry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/result.h"

namespace tocsin::metrics {
namespace {

// The text format gets every power of two of microseconds from 16 us to 36 minutes; quantiles use the finer buckets.
constexpr unsigned kShownFrom = 4;
constexpr unsigned kShownTo = 31;

constexpr std::string_view kKindNames[] = {"counter", "gauge", "histogram"};  // in the order of Kind

void AppendEscaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

/// a="x",b="y": identifies a series in its family.
void AppendLabels(std::string& out, const Labels& labels) {
  bool first = true;
  for (const Label& label : labels) {
    if (!std::exchange(first, false)) out += ',';
    out += label.name;
    out += "=\"";
    AppendEscaped(out, label.value, true);
    out += '"';
  }
}

std::string LabelText(const Labels& labels) {
  std::string text;
  AppendLabels(text, labels);
  return text;
}

void AppendInteger(std::string& out, uint64_t value) {
  const fmt::format_int text(value);
  out.append(text.data(), text.size());
}

void AppendNumber(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else if (value == std::floor(value) && std::abs(value) < 9e15) {
    const fmt::format_int text(static_cast<int64_t>(value));
    out.append(text.data(), text.size());
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

/// name{labels} and a blank, before the value.
void AppendSeries(std::string& out, std::string_view name, std::string_view labels) {
  out += name;
  if (!labels.empty()) {
    out += '{';
    out += labels;
    out += '}';
  }
  out += ' ';
}

/// The text of each bound that is shown, in seconds.
const std::array<std::string, kShownTo - kShownFrom + 1>& BoundTexts() {
  static const auto texts = [] {
    std::array<std::string, kShownTo - kShownFrom + 1> bounds;
    for (unsigned power = kShownFrom; power <= kShownTo; ++power) {
      AppendNumber(bounds[power - kShownFrom], static_cast<double>(uint64_t{1} << power) / 1e6);
    }
    return bounds;
  }();
  return texts;
}

void AppendHistogram(std::string& out, std::string_view name, std::string_view labels, const Histogram& histogram) {
  const Histogram::Snapshot read = histogram.Read();
  const std::string begin = fmt::format("{}_bucket{{{}{}le=\"", name, labels, labels.empty() ? "" : ",");
  const auto line = [&](std::string_view bound, uint64_t up_to) {
    out += begin;
    out += bound;
    out += "\"} ";
    AppendInteger(out, up_to);
    out += '\n';
  };
  uint64_t up_to = 0;
  size_t bucket = 0;
  for (unsigned power = kShownFrom; power <= kShownTo; ++power) {
    for (; bucket <= Histogram::BucketOf(uint64_t{1} << power); ++bucket) up_to += read.buckets[bucket];
    line(BoundTexts()[power - kShownFrom], up_to);
  }
  line("+Inf", read.count);
  AppendSeries(out, fmt::format("{}_sum", name), labels);
  AppendNumber(out, read.sum_seconds);
  out += '\n';
  AppendSeries(out, fmt::format("{}_count", name), labels);
  AppendInteger(out, read.count);
  out += '\n';
}

/// What the collectors put into one family.
struct Collected {
  Kind kind = Kind::kGauge;
  std::string help;
  std::string lines;
  size_t series = 0;
};
using CollectedFamilies = std::map<std::string, Collected, std::less<>>;

class TextSamples final : public Samples {
 public:
  TextSamples(CollectedFamilies& families, size_t series_max) : families_(families), series_max_(series_max) {}

  void Add(Kind kind, std::string_view name, std::string_view help, const Labels& labels, double value) override {
    auto at = families_.find(name);
    if (at == families_.end()) at = families_.emplace(name, Collected{kind, std::string(help), {}}).first;
    Collected& family = at->second;
    TOCSIN_CHECK(family.kind == kind && kind != Kind::kHistogram);
    if (family.series++ >= series_max_) return;
    labels_.clear();
    AppendLabels(labels_, labels);
    AppendSeries(family.lines, name, labels_);
    AppendNumber(family.lines, value);
    family.lines += '\n';
  }

 private:
  CollectedFamilies& families_;
  const size_t series_max_;
  std::string labels_;  // a member, so that a sample allocates nothing
};

void AppendFamily(std::string& out, std::string_view name, Kind kind, std::string_view help) {
  out += "# HELP ";
  out += name;
  out += ' ';
  AppendEscaped(out, help, false);
  fmt::format_to(std::back_inserter(out), "\n# TYPE {} {}\n", name, kKindNames[static_cast<size_t>(kind)]);
}

}  // namespace

struct Registry::Series {
  Labels labels;
  std::string text;  // of the labels
  std::variant<std::shared_ptr<Counter>, std::shared_ptr<Gauge>, std::shared_ptr<Histogram>> figure;

  void Append(std::string& out, std::string_view name) const {
    if (const auto* histogram = std::get_if<std::shared_ptr<Histogram>>(&figure)) {
      return AppendHistogram(out, name, text, **histogram);
    }
    AppendSeries(out, name, text);
    if (const auto* counter = std::get_if<std::shared_ptr<Counter>>(&figure)) {
      AppendInteger(out, (*counter)->Value());
    } else {
      AppendNumber(out, std::get<std::shared_ptr<Gauge>>(figure)->Value());
    }
    out += '\n';
  }
};

struct Registry::Family {
  Kind kind = Kind::kGauge;
  std::string help;
  std::map<std::string_view, std::shared_ptr<const Series>> series;  // by their text
};

Registry::Registry(size_t series_max) : series_max_(series_max) {}
Registry::~Registry() = default;

template <class T>
std::shared_ptr<T> Registry::Get(Kind kind, std::string_view name, std::string_view help, const Labels& labels) {
  const std::lock_guard lock(mutex_);
  auto at = families_.find(name);
  if (at == families_.end()) at = families_.emplace(name, Family{kind, std::string(help), {}}).first;
  Family& family = at->second;
  TOCSIN_CHECK(family.kind == kind);
  Labels own = labels;
  std::string text = LabelText(own);
  if (family.series.size() >= series_max_ && !family.series.contains(text)) {
    for (Label& label : own) label.value = "other";
    text = LabelText(own);
  }
  auto at_series = family.series.find(text);
  if (at_series == family.series.end()) {
    auto series = std::make_shared<const Series>(std::move(own), std::move(text), std::make_shared<T>());
    at_series = family.series.emplace(series->text, series).first;
  }
  return std::get<std::shared_ptr<T>>(at_series->second->figure);
}

std::shared_ptr<Counter> Registry::GetCounter(std::string_view name, std::string_view help, const Labels& labels) {
  return Get<Counter>(Kind::kCounter, name, help, labels);
}

std::shared_ptr<Gauge> Registry::GetGauge(std::string_view name, std::string_view help, const Labels& labels) {
  return Get<Gauge>(Kind::kGauge, name, help, labels);
}

std::shared_ptr<Histogram> Registry::GetHistogram(std::string_view name, std::string_view help, const Labels& labels) {
  return Get<Histogram>(Kind::kHistogram, name, help, labels);
}

void Registry::DropSeries(std::string_view label, std::string_view value) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, family] : families_) {
    std::erase_if(family.series, [&](const auto& series) {
      return std::ranges::any_of(series.second->labels,
                                 [&](const Label& own) { return own.name == label && own.value == value; });
    });
  }
}

Registry::Registration Registry::AddCollector(Collector collector) {
  const std::lock_guard lock(collect_mutex_);
  collectors_.emplace(next_collector_, std::move(collector));
  return Registration(this, next_collector_++);
}

Registry::Registration& Registry::Registration::operator=(Registration&& other) noexcept {
  std::swap(registry_, other.registry_);
  std::swap(number_, other.number_);
  return *this;
}

Registry::Registration::~Registration() {
  if (registry_ == nullptr) return;
  const std::lock_guard lock(registry_->collect_mutex_);
  registry_->collectors_.erase(number_);
}

std::vector<Registry::FamilyView> Registry::Look() {
  const std::lock_guard lock(mutex_);
  std::vector<FamilyView> views;
  for (const auto& [name, family] : families_) {
    if (family.series.empty()) continue;
    FamilyView& view = views.emplace_back(name, family.kind, family.help);
    view.series.reserve(family.series.size());
    for (const auto& [text, series] : family.series) view.series.push_back(series);
  }
  return views;
}

std::string Registry::RenderPrometheus() {
  CollectedFamilies collected;
  {
    const std::lock_guard collecting(collect_mutex_);
    TextSamples samples(collected, series_max_);
    for (auto& [number, collector] : collectors_) collector(samples);
  }
  std::string out;
  out.reserve(last_bytes_.load(std::memory_order_relaxed));
  auto next = collected.begin();
  const auto append_up_to = [&](std::string_view name) {  // the collected families before this name
    for (; next != collected.end() && (name.empty() || next->first < name); ++next) {
      AppendFamily(out, next->first, next->second.kind, next->second.help);
      out += next->second.lines;
    }
  };
  for (const FamilyView& family : Look()) {
    append_up_to(family.name);
    AppendFamily(out, family.name, family.kind, family.help);
    if (next != collected.end() && next->first == family.name) out += next++->second.lines;
    for (const auto& series : family.series) series->Append(out, family.name);
  }
  append_up_to({});
  last_bytes_.store(out.size() + out.size() / 16, std::memory_order_relaxed);
  return out;
}

}  // namespace tocsin::metrics
