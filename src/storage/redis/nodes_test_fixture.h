// For tests of the Redis store: several nodes on one real Redis, which lives as long as the test program.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/result.h"
#include "real/redis_servers.h"
#include "storage/redis/nodes_test_world.h"

namespace tocsin::redis {

inline real::RedisServer& Server() {
  static const std::unique_ptr<real::RedisServer> server = [] {
    auto made = real::RedisServer::Make();
    TOCSIN_CHECK(made);
    return *std::move(made);
  }();
  return *server;
}

/// Seconds of processor time that Redis' main thread has used: unlike the clock, not longer on a busy machine.
inline double ServerCpu() {
  const auto info = Server().Ask({"INFO", "cpu"});
  TOCSIN_CHECK(info);
  double seconds = 0;
  for (const std::string_view name : {"used_cpu_user_main_thread:", "used_cpu_sys_main_thread:"}) {
    const size_t at = info->text.find(name);
    TOCSIN_CHECK(at != std::string::npos);
    seconds += std::strtod(info->text.c_str() + at + name.size(), nullptr);
  }
  return seconds;
}

inline NewJob Job(std::string_view id, Millis delay = Millis(0), uint32_t slot = 0) {
  NewJob job;
  job.id = id;
  job.delay = delay;
  job.payload = "payload";
  job.slot = slot;
  return job;
}

class RedisNodes : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Server().Ask({"FLUSHALL"}));
    topic_ = DefaultTopic("orders");
    topic_.slots = 1;
  }

  std::unique_ptr<TestNode> Node(const std::string& name, ClockSource clock = ClockSource::kCaller, uint64_t topics = 0,
                                 uint32_t groups = kGroups) {
    return std::make_unique<TestNode>(
        io_, ClientOptions(), clock == ClockSource::kCaller ? static_cast<Clock&>(clock_) : real_clock_, metrics_,
        StoreOptions{.node = name, .groups = {.count = groups}, .clock = clock, .topics = topics});
  }

  virtual Options ClientOptions() const {
    Options options;
    options.endpoints = {{"127.0.0.1", Server().port()}};
    return options;
  }

  template <class T>
  Result<T> Await(TestNode& node, const std::function<void(Done<T>)>& call) {
    std::optional<Result<T>> answer;
    call([&](Result<T> result) { answer.emplace(std::move(result)); });
    while (!answer) TOCSIN_CHECK(io_.run_one() > 0);
    node.Pump();
    return *std::move(answer);
  }
  /// Runs until nothing arrives any more: messages have no answer that one could wait for.
  void Quiet() {
    while (io_.run_one_for(std::chrono::milliseconds(30)) > 0) {
    }
  }
  Result<void> Put(TestNode& node, const Topic& topic) {
    return Await<void>(node, [&](Done<void> done) { node.store().PutTopic(topic, std::move(done)); });
  }
  SubmitOutcome Submit(TestNode& node, const NewJob& job) {
    const auto outcomes = Await<std::vector<Submitted>>(
        node, [&](auto done) { node.store().Submit("orders", {&job, 1}, clock_.Now(), std::move(done)); });
    EXPECT_TRUE(outcomes) << outcomes.error().message;
    return outcomes ? (*outcomes)[0].outcome : SubmitOutcome::kOverloaded;
  }
  TopicChanges ChangesSeenBy(TestNode& node) {
    Advance(node);
    return node.store().TakeTopicChanges();
  }
  Advanced Advance(TestNode& node) {
    auto advanced =
        Await<Advanced>(node, [&](auto done) { node.store().Advance(clock_.Now(), 1000, std::move(done)); });
    EXPECT_TRUE(advanced) << advanced.error().message;
    return advanced ? *std::move(advanced) : Advanced{};
  }
  std::vector<JobView> Claim(TestNode& node, size_t max = 100, Millis lease = std::chrono::seconds(30),
                             JobRoom* room = nullptr) {
    auto batch = Await<JobBatch>(
        node, [&](auto done) { node.store().Claim("orders", {max, room}, lease, clock_.Now(), std::move(done)); });
    EXPECT_TRUE(batch) << batch.error().message;
    batch_ = batch ? *std::move(batch) : JobBatch{};
    return batch_.jobs;
  }
  SettleOutcome Ack(TestNode& node, const Token& token) {
    const Settlement settlement{.token = token};
    return (*Await<std::vector<SettleOutcome>>(
        node, [&](auto done) { node.store().Settle("orders", {&settlement, 1}, clock_.Now(), std::move(done)); }))[0];
  }

  std::vector<SettleOutcome> Settle(TestNode& node, const std::vector<Token>& tokens,
                                    SettleKind kind = SettleKind::kAck) {
    std::vector<Settlement> settlements;
    for (const Token& token : tokens) settlements.push_back({.token = token, .kind = kind});
    return *Await<std::vector<SettleOutcome>>(
        node, [&](auto done) { node.store().Settle("orders", settlements, clock_.Now(), std::move(done)); });
  }

  boost::asio::io_context io_;
  metrics::Registry metrics_;
  VirtualClock clock_;
  RealClock real_clock_;
  Topic topic_;
  JobBatch batch_;
};

}  // namespace tocsin::redis
