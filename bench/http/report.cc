#include "report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

namespace tocsin::bench {
namespace {

std::string Shown(double value) {
  const double size = std::abs(value);
  const int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : 2;
  return fmt::format("{:.{}f}", value, decimals);
}

/// Our own names and settings: nothing in them needs more than this.
std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

void AppendTo(Figures& figures, Times& times, const std::string& what, const std::string& target) {
  figures.push_back({what + " p50", times.Ms(0.5), "ms"});
  figures.push_back({what + " p99", times.Ms(0.99), "ms", target});
  figures.push_back({what + " p99.9", times.Ms(0.999), "ms"});
  figures.push_back({what + " max", times.Ms(1), "ms"});
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void Report::Add(const std::string& workload, const Figures& run) {
  for (const Figure& figure : run) {
    const auto row = std::ranges::find_if(
        rows_, [&](const Row& each) { return each.workload == workload && each.figure.name == figure.name; });
    if (row == rows_.end()) {
      rows_.push_back({workload, figure, {figure.value}});
    } else {
      row->values.push_back(figure.value);
    }
  }
}

void Report::Print() const {
  std::printf("\n");
  for (const auto& [name, value] : settings_) std::printf("%-12s %s\n", name.c_str(), value.c_str());
  std::string workload;
  for (const Row& row : rows_) {
    if (row.workload != workload) {
      workload = row.workload;
      std::printf("\n%-34s %14s %12s %12s  %-8s %s\n", workload.c_str(),
                  fmt::format("median of {}", row.values.size()).c_str(), "lowest", "highest", "unit", "target");
    }
    const auto [least, most] = std::ranges::minmax(row.values);
    std::printf("  %-32s %14s %12s %12s  %-8s %s\n", row.figure.name.c_str(), Shown(Median(row.values)).c_str(),
                Shown(least).c_str(), Shown(most).c_str(), row.figure.unit.c_str(), row.figure.target.c_str());
  }
  std::fflush(stdout);
}

void Report::WriteJson(const std::string& path) const {
  std::string out = "{\n  \"settings\": {";
  for (const auto& [name, value] : settings_) {
    out += fmt::format("{}\n    {}: {}", out.back() == '{' ? "" : ",", Quoted(name), Quoted(value));
  }
  out += "\n  },\n  \"figures\": [";
  for (const Row& row : rows_) {
    const auto [least, most] = std::ranges::minmax(row.values);
    out += fmt::format(
        "{}\n    {{\"workload\": {}, \"name\": {}, \"unit\": {}, \"target\": {}, \"median\": {}, \"lowest\": {}, "
        "\"highest\": {}, \"runs\": [{}]}}",
        out.back() == '[' ? "" : ",", Quoted(row.workload), Quoted(row.figure.name), Quoted(row.figure.unit),
        Quoted(row.figure.target), Median(row.values), least, most, fmt::join(row.values, ", "));
  }
  out += "\n  ]\n}\n";
  std::ofstream file(path);
  file << out;
  if (!file.flush()) Die("cannot write {}", path);
}

}  // namespace tocsin::bench
