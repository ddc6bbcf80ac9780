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

// The powers of two of microseconds that the text format gets as bounds: all from 16 us to 17 s, and a few up to 36
// minutes, because every bound is a line of every histogram. Quantiles use the finer buckets.
constexpr unsigned kShownPowers[] = {4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                     16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 31};

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
const std::array<std::string, std::size(kShownPowers)>& BoundTexts() {
  static const auto texts = [] {
    std::array<std::string, std::size(kShownPowers)> bounds;
    for (size_t i = 0; i < bounds.size(); ++i) {
      AppendNumber(bounds[i], static_cast<double>(uint64_t{1} << kShownPowers[i]) / 1e6);
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
  for (size_t i = 0; i < std::size(kShownPowers); ++i) {
    for (; bucket <= Histogram::BucketOf(uint64_t{1} << kShownPowers[i]); ++bucket) up_to += read.buckets[bucket];
    line(BoundTexts()[i], up_to);
  }
  line("+Inf", read.count);
  AppendSeries(out, fmt::format("{}_sum", name), labels);
  AppendNumber(out, read.sum_seconds);
  out += '\n';
  AppendSeries(out, fmt::format("{}_count", name), labels);
  AppendInteger(out, read.count);
  out += '\n';
}

void AppendFamily(std::string& out, std::string_view name, Kind kind, std::string_view help) {
  out += "# HELP ";
  out += name;
  out += ' ';
  AppendEscaped(out, help, false);
  fmt::format_to(std::back_inserter(out), "\n# TYPE {} {}\n", name, kKindNames[static_cast<size_t>(kind)]);
}

}  // namespace

/// What the collectors put into one family: lines, or a column of a table.
struct Registry::Collected {
  Kind kind = Kind::kGauge;
  std::string help;
  std::string lines = {};
  size_t series = 0;
  const Table* table = nullptr;
  size_t column = 0;
};

class Registry::TextSamples final : public Samples {
 public:
  explicit TextSamples(Registry& registry) : registry_(registry) {}

  void Add(Kind kind, std::string_view name, std::string_view help, const Labels& labels, double value) override {
    Registry::Collected& family = FamilyOf(kind, name, help);
    if (family.series++ >= registry_.series_max_) return;
    labels_.clear();
    AppendLabels(labels_, labels);
    AppendSeries(family.lines, name, labels_);
    AppendNumber(family.lines, value);
    family.lines += '\n';
  }

  void Add(Table table) override {
    TOCSIN_CHECK(table.values.size() == table.rows.size() * table.columns.size());
    if (table.rows.empty()) return;
    const Table* const kept =
        registry_.collected_tables_.emplace_back(std::make_unique<const Table>(std::move(table))).get();
    for (size_t column = 0; column < kept->columns.size(); ++column) {
      const Table::Column& each = kept->columns[column];
      Registry::Collected& family = FamilyOf(each.kind, each.name, each.help);
      family.table = kept;
      family.column = column;
    }
  }

 private:
  Registry::Collected& FamilyOf(Kind kind, std::string_view name, std::string_view help) {
    auto at = registry_.collected_.find(name);
    if (at == registry_.collected_.end()) {
      at = registry_.collected_.emplace(name, Registry::Collected{kind, std::string(help)}).first;
    }
    TOCSIN_CHECK(at->second.kind == kind && kind != Kind::kHistogram);
    return at->second;
  }

  Registry& registry_;
  std::string labels_;  // a member, so that a sample allocates nothing
};

struct Registry::Series {
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
    auto series = std::make_shared<const Series>(std::move(text), std::make_shared<T>());
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
  const std::string text = LabelText(Labels{Label{std::string(label), std::string(value)}});
  const std::lock_guard lock(mutex_);
  for (auto& [name, family] : families_) {
    auto at = family.series.lower_bound(text);
    while (at != family.series.end() && at->first.starts_with(text)) at = family.series.erase(at);
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

Registry::Rendering::Rendering(Registry& registry) : registry_(registry) {
  const std::lock_guard collecting(registry_.collect_mutex_);
  registry_.collected_.clear();
  registry_.collected_tables_.clear();
  TextSamples samples(registry_);
  for (auto& [number, collector] : registry_.collectors_) collector(samples);
  ++registry_.renderings_;
}

Registry::Rendering::~Rendering() {
  if (!ended_) --registry_.renderings_;
}

void Registry::Rendering::End() {
  ended_ = true;
  const std::lock_guard collecting(registry_.collect_mutex_);
  if (--registry_.renderings_ > 0) return;
  registry_.collected_.clear();
  registry_.collected_tables_.clear();
}

bool Registry::Rendering::Next(std::string& out) {
  constexpr size_t kPieceBytes = 256 << 10;  // one piece, unless there are hundreds of topics
  for (const size_t enough = out.size() + kPieceBytes; out.size() < enough;) {
    if (!Step(out)) {
      End();
      return false;
    }
  }
  return true;
}

bool Registry::Rendering::Step(std::string& out) {
  switch (part_) {
    case Part::kHead:
      return BeginFamily(out);
    case Part::kCollected:
      AppendCollected(out);
      return true;
    case Part::kOwn:
      AppendOwn(out);
      return true;
  }
  return false;
}

bool Registry::Rendering::BeginFamily(std::string& out) {
  const std::scoped_lock lock(registry_.collect_mutex_, registry_.mutex_);
  const auto collected = registry_.collected_.upper_bound(family_);
  auto own = registry_.families_.upper_bound(family_);
  while (own != registry_.families_.end() && own->second.series.empty()) ++own;
  const bool has_collected = collected != registry_.collected_.end();
  const bool has_own = own != registry_.families_.end();
  if (!has_collected && !has_own) return false;
  if (has_own && (!has_collected || own->first <= collected->first)) {
    family_ = own->first;
    AppendFamily(out, family_, own->second.kind, own->second.help);
  } else {
    family_ = collected->first;
    AppendFamily(out, family_, collected->second.kind, collected->second.help);
  }
  part_ = Part::kCollected;
  fresh_ = true;
  return true;
}

void Registry::Rendering::AppendCollected(std::string& out) {
  constexpr size_t kRows = 64;  // in one step
  const std::lock_guard collecting(registry_.collect_mutex_);
  const auto family = registry_.collected_.find(family_);
  const bool there = family != registry_.collected_.end();
  if (there && fresh_) out += family->second.lines;
  if (there && family->second.table != nullptr) {
    const Table& table = *family->second.table;
    // By name: another scrape may have read the table again since.
    size_t row = fresh_ ? 0 : static_cast<size_t>(std::ranges::upper_bound(table.rows, after_) - table.rows.begin());
    const size_t stop = std::min(table.rows.size(), row + kRows);
    for (; row < stop; ++row) {
      out += family_;
      out += '{';
      out += table.label;
      out += "=\"";
      AppendEscaped(out, table.rows[row], true);
      out += "\"} ";
      AppendNumber(out, table.values[row * table.columns.size() + family->second.column]);
      out += '\n';
    }
    if (stop < table.rows.size()) {
      fresh_ = false;
      after_ = table.rows[stop - 1];
      return;
    }
  }
  part_ = Part::kOwn;
  fresh_ = true;
}

void Registry::Rendering::AppendOwn(std::string& out) {
  constexpr size_t kSeries = 8;  // in one step: a histogram takes some 3 KiB
  std::vector<std::shared_ptr<const Series>> some;
  {
    const std::lock_guard lock(registry_.mutex_);
    const auto family = registry_.families_.find(family_);
    if (family != registry_.families_.end()) {
      const auto& series = family->second.series;
      auto at = fresh_ ? series.begin() : series.upper_bound(after_);
      for (; at != series.end() && some.size() < kSeries; ++at) some.push_back(at->second);
    }
  }
  for (const auto& series : some) series->Append(out, family_);
  if (some.size() < kSeries) {
    part_ = Part::kHead;
  } else {
    fresh_ = false;
    after_ = some.back()->text;
  }
}

std::string Registry::RenderPrometheus() {
  std::string out;
  Rendering rendering(*this);
  while (rendering.Next(out)) {
  }
  return out;
}

}  // namespace tocsin::metrics
