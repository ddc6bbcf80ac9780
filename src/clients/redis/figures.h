// Figures: what a client records. All clients of a process share the series.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>

#include "clients/redis/command.h"
#include "metrics/registry.h"

namespace tocsin::redis {

class Figures {
 public:
  explicit Figures(metrics::Registry& registry);

  /// From the sending of a script to its answer.
  void RecordScript(const Script& script, std::chrono::nanoseconds took);

  std::shared_ptr<metrics::Histogram> round_trips;
  // Commands, by how they ended.
  std::shared_ptr<metrics::Counter> answered;
  std::shared_ptr<metrics::Counter> refused;
  std::shared_ptr<metrics::Counter> failed;
  std::shared_ptr<metrics::Counter> reconnects;
  std::shared_ptr<metrics::Counter> moved;
  std::shared_ptr<metrics::Counter> asked;

 private:
  metrics::Registry& registry_;
  std::unordered_map<std::string, std::shared_ptr<metrics::Histogram>> scripts_;  // by name
};

}  // namespace tocsin::redis
