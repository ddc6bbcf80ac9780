// What a run measured, and how several runs are shown: the median of each figure with the lowest and the highest, as a
// table and as JSON.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "shared/times.h"

namespace tocsin::bench {

struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  std::string target = {};
};
using Figures = std::vector<Figure>;

/// p50, p99, p99.9 and max, each named `what` with that behind it; `target` is of p99.
void AppendTo(Figures& figures, Times& times, const std::string& what, const std::string& target = {});

double Median(std::vector<double> values);

class Report {
 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;

  void Set(Settings settings) { settings_ = std::move(settings); }
  void Add(const std::string& workload, const Figures& run);
  void Print() const;
  void WriteJson(const std::string& path) const;

 private:
  struct Row {
    std::string workload;
    Figure figure;
    std::vector<double> values;
  };

  Settings settings_;
  std::vector<Row> rows_;
};

}  // namespace tocsin::bench
