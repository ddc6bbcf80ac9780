// PushTest: a node with sinks that a test drives, for tests of what is pushed.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/figures.h"
#include "core/test_node.h"
#include "core/test_sinks.h"
#include "spi/push_memory.h"

namespace tocsin {

class PushTest : public testing::TestWithParam<std::tuple<size_t, bool>> {
 protected:
  static constexpr PushMemory::Bounds kRoomy{.limit = 0, .most = size_t{1} << 40, .least = size_t{1} << 40};

  explicit PushTest(PushMemory::Bounds bounds = kRoomy) : push_memory(bounds) {}

  using Settings = std::map<std::string, std::string, std::less<>>;

  static inline const Delivered kYes{};
  static Delivered Later(std::optional<Millis> delay = std::nullopt) {
    return {DeliverOutcome::kRetry, delay, "the receiver is busy"};
  }
  static Delivered Never(std::string reason) { return {DeliverOutcome::kRefused, std::nullopt, std::move(reason)}; }

  static Topic Pushed(std::string name, Settings settings = {}) {
    Topic topic = DefaultTopic(std::move(name));
    topic.delivery = {.sink = "webhook", .settings = std::move(settings)};
    topic.delivery.settings.try_emplace("url", "http://receiver/");
    return topic;
  }
  void Put(const Topic& topic) {
    const Result<Topic> put = node.PutTopic(topic);
    ASSERT_TRUE(put) << put.error().message;
  }
  /// Jobs whose payloads are their numbers.
  void Submit(size_t count, const std::string& topic = "t", size_t shard = 0) {
    std::vector<std::string> payloads;
    for (size_t i = 0; i < count; ++i) payloads.push_back(std::to_string(i));
    std::vector<NewJob> jobs(count);
    for (size_t i = 0; i < count; ++i) jobs[i].payload = payloads[i];
    ASSERT_TRUE(node.Submit(topic, std::move(jobs), shard));
  }
  void AnswerAll(const Delivered& delivered) {
    sinks.AnswerAll(delivered);
    node.Run();
  }
  TopicFigures FiguresOf(std::string_view name = "t") {
    for (TopicFigures& each : node.Topics()) {
      if (each.topic.name == name) return std::move(each);
    }
    ADD_FAILURE() << "no topic " << name;
    return {};
  }
  uint64_t Outcomes(const std::string& outcome) {
    return node.metrics
        .GetCounter("tocsin_push_outcomes_total", "", {{"topic", "t"}, {"sink", "webhook"}, {"outcome", outcome}})
        ->Value();
  }
  double SecondsOf(const std::string& histogram) {
    return node.metrics.GetHistogram(histogram, "", {{"topic", "t"}, {"sink", "webhook"}})->Read().sum_seconds;
  }
  double InFlight() {
    return node.metrics.GetGauge("tocsin_push_in_flight", "", {{"topic", "t"}, {"sink", "webhook"}})->Value();
  }
  double FailuresInARow() {
    return node.metrics.GetGauge("tocsin_push_failures_in_a_row", "", {{"topic", "t"}, {"sink", "webhook"}})->Value();
  }
  void FailSettles(std::optional<Code> code) {
    for (auto& store : node.stores) store->fail_settles = code;
  }
  /// Figures of the stores themselves, for when the service has stopped.
  uint64_t Sum(uint64_t TopicFigures::* figure) const {
    uint64_t sum = 0;
    for (const auto& store : node.stores) {
      for (const TopicFigures& topic : store->Topics()) sum += topic.*figure;
    }
    return sum;
  }

  TestSinks sinks;
  PushMemory push_memory;
  TestNode node{std::get<0>(GetParam()), std::get<1>(GetParam()), {}, &sinks, &push_memory};
};

inline std::string PushTestName(const testing::TestParamInfo<std::tuple<size_t, bool>>& info) {
  return fmt::format("{}{}", std::get<0>(info.param), std::get<1>(info.param) ? "late" : "at_once");
}

}  // namespace tocsin
