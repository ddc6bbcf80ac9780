#include "metrics/registry.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/check.h"

namespace tocsin::metrics {
namespace {

// The text format gets every power of two of microseconds from 16 us to 36 minutes; quantiles use the finer buckets.
constexpr unsigned kShownFrom = 4;
constexpr unsigned kShownTo = 31;

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return "counter";
    case Kind::kGauge:
      return "gauge";
    case Kind::kHistogram:
      return "histogram";
  }
  std::unreachable();
}

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

/// a="x",b="y": how a series is told from the others of its family.
std::string LabelText(const Labels& labels) {
  std::string text;
  for (const Label& label : labels) {
    if (!text.empty()) text += ',';
    text += label.name;
    text += "=\"";
    AppendEscaped(text, label.value, true);
    text += '"';
  }
  return text;
}

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == std::floor(value) && std::abs(value) < 9e15) return fmt::format("{}", static_cast<int64_t>(value));
  return fmt::format("{}", value);
}

void AppendLine(std::string& out, std::string_view name, std::string_view labels, std::string_view value) {
  out += name;
  if (!labels.empty()) fmt::format_to(std::back_inserter(out), "{{{}}}", labels);
  fmt::format_to(std::back_inserter(out), " {}\n", value);
}

void AppendHistogram(std::string& out, const std::string& name, const std::string& labels, const Histogram& histogram) {
  const Histogram::Snapshot read = histogram.Read();
  const std::string_view comma = labels.empty() ? "" : ",";
  uint64_t up_to = 0;
  size_t bucket = 0;
  for (unsigned power = kShownFrom; power <= kShownTo; ++power) {
    const uint64_t bound_us = uint64_t{1} << power;
    for (; bucket <= Histogram::BucketOf(bound_us); ++bucket) up_to += read.buckets[bucket];
    fmt::format_to(std::back_inserter(out), "{}_bucket{{{}{}le=\"{}\"}} {}\n", name, labels, comma,
                   Number(static_cast<double>(bound_us) / 1e6), up_to);
  }
  fmt::format_to(std::back_inserter(out), "{}_bucket{{{}{}le=\"+Inf\"}} {}\n", name, labels, comma, read.count);
  AppendLine(out, name + "_sum", labels, Number(read.sum_seconds));
  AppendLine(out, name + "_count", labels, fmt::format("{}", read.count));
}

/// A family while it is being rendered.
struct Text {
  Kind kind = Kind::kGauge;
  std::string help;
  std::map<std::string, std::string> series;  // labels -> lines
};
using Texts = std::map<std::string, Text, std::less<>>;

class TextSink final : public Sink {
 public:
  TextSink(Texts& texts, size_t series_max) : texts_(texts), series_max_(series_max) {}

  void Sample(Kind kind, std::string_view name, std::string_view help, const Labels& labels, double value) override {
    auto at = texts_.find(name);
    if (at == texts_.end()) at = texts_.emplace(name, Text{kind, std::string(help), {}}).first;
    Text& text = at->second;
    TOCSIN_CHECK(text.kind == kind && kind != Kind::kHistogram);
    std::string label_text = LabelText(labels);
    if (text.series.size() >= series_max_ && !text.series.contains(label_text)) return;
    std::string line;
    AppendLine(line, name, label_text, Number(value));
    text.series.insert_or_assign(std::move(label_text), std::move(line));
  }

 private:
  Texts& texts_;
  const size_t series_max_;
};

}  // namespace

struct Registry::Series {
  Labels labels;
  std::variant<std::shared_ptr<Counter>, std::shared_ptr<Gauge>, std::shared_ptr<Histogram>> figure;
};

struct Registry::Family {
  Kind kind = Kind::kGauge;
  std::string help;
  std::map<std::string, Series> series;  // by LabelText
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
  auto [series, fresh] = family.series.try_emplace(std::move(text));
  if (fresh) series->second = Series{std::move(own), std::make_shared<T>()};
  return std::get<std::shared_ptr<T>>(series->second.figure);
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
      return std::ranges::any_of(series.second.labels,
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

std::string Registry::RenderPrometheus() {
  Texts texts;
  {
    const std::lock_guard collecting(collect_mutex_);
    TextSink sink(texts, series_max_);
    for (auto& [number, collector] : collectors_) collector(sink);
  }
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, family] : families_) {
      if (family.series.empty()) continue;
      Text& text = texts[name];
      text.kind = family.kind;
      text.help = family.help;
      for (const auto& [labels, series] : family.series) {
        std::string& lines = text.series[labels];
        lines.clear();
        if (const auto* histogram = std::get_if<std::shared_ptr<Histogram>>(&series.figure)) {
          AppendHistogram(lines, name, labels, **histogram);
        } else if (const auto* counter = std::get_if<std::shared_ptr<Counter>>(&series.figure)) {
          AppendLine(lines, name, labels, fmt::format("{}", (*counter)->Value()));
        } else {
          AppendLine(lines, name, labels, Number(std::get<std::shared_ptr<Gauge>>(series.figure)->Value()));
        }
      }
    }
  }
  std::string out;
  for (const auto& [name, text] : texts) {
    fmt::format_to(std::back_inserter(out), "# HELP {} ", name);
    AppendEscaped(out, text.help, false);
    fmt::format_to(std::back_inserter(out), "\n# TYPE {} {}\n", name, KindName(text.kind));
    for (const auto& [labels, lines] : text.series) out += lines;
  }
  return out;
}

}  // namespace tocsin::metrics
