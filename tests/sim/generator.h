// Random operations over several topics with different settings: the same seed gives the same ones. It learns from the
// oracle's answers which ids and deliveries there are, so that most operations meet a job.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "sim/operations.h"

namespace tocsin::sim {

class Generator {
 public:
  struct Shape {
    int large_percent = 5;       // of the payloads
    uint64_t live_max = 120;     // jobs of a topic
    size_t sweep_limit_min = 1;  // jobs of a call
  };
  Generator(uint64_t seed, Shape shape) : random_(seed), shape_(shape) {}

  /// Makes the topics.
  std::vector<Operation> Begin();
  Operation Next(const Side& oracle, Moment now);
  /// What the oracle answered to the last one.
  void Learn(const Reply& reply, const Side& oracle);
  /// How time passes before the next one.
  Millis Wait();

  uint64_t Below(uint64_t end) { return random_() % end; }
  bool Chance(int percent) { return Below(100) < static_cast<uint64_t>(percent); }

 private:
  struct Delivery {
    size_t topic = 0;
    size_t index = 0;
  };

  size_t AnyTopic() { return Below(topics_.size()); }
  bool Mixed(size_t topic) const { return topics_[topic].name == "mixed"; }
  Millis Delay();
  std::string Bytes();
  std::string Id(size_t topic);
  std::string Key();
  OwnedJob Job(size_t topic, Moment now);
  Operation MakeSubmit(Moment now);
  Operation MakeClaim();
  Operation MakeSettle();
  Operation MakeAmend(Moment now);
  Operation MakeCount();
  Operation MakeSweep();
  Operation MakeTopic();
  /// Ends jobs if there are so many that the oracle becomes slow.
  std::optional<Operation> Relief(const Side& oracle);

  std::mt19937_64 random_;
  const Shape shape_;
  std::vector<Topic> topics_;
  std::vector<std::vector<std::string>> server_ids_;
  std::vector<Delivery> open_;  // deliveries not yet settled
  size_t claimed_topic_ = SIZE_MAX;
  size_t submitted_topic_ = SIZE_MAX;
  size_t deliveries_ = 0;
  uint64_t payloads_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace tocsin::sim
