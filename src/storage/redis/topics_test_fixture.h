// For tests of topics that several nodes share on one real Redis.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "storage/redis/nodes_test_fixture.h"
#include "storage/redis/scripts.h"

namespace tocsin::redis {

class RedisTopics : public RedisNodes {
 protected:
  Result<void> Drop(TestNode& node) {
    return Await<void>(node, [&](Done<void> done) { node.store().DropTopic("orders", std::move(done)); });
  }
  Result<std::vector<Submitted>> TrySubmit(TestNode& node, const NewJob& job) {
    return Await<std::vector<Submitted>>(
        node, [&](auto done) { node.store().Submit("orders", {&job, 1}, clock_.Now(), std::move(done)); });
  }
  /// A topic of this version and so many slots, where all have a job but for the last.
  void Fill(TestNode& node, uint64_t version, uint32_t slots) {
    topic_.version = version;
    topic_.slots = slots;
    ASSERT_TRUE(Put(node, topic_));
    for (uint32_t slot = 0; slot + 1 < slots; ++slot) {
      ASSERT_EQ(Submit(node, Job(fmt::format("old{}", slot), Millis(0), slot)), SubmitOutcome::kAccepted);
    }
  }
  /// As the core does with what the store has heard of.
  void Hear(TestNode& node) {
    for (const HeardTopic& topic : ChangesSeenBy(node).changed) EXPECT_TRUE(node.store().AdoptTopic(topic));
  }
  static SlotKeys KeysOf(uint32_t slot) { return KeysOfOrders(slot); }
  /// How often the node calls the script from now on.
  static std::shared_ptr<size_t> Counted(TestNode& node, std::string_view script) {
    auto calls = std::make_shared<size_t>(0);
    node.client().fails = [calls, script](const Command& command) {
      *calls += command.script() != nullptr && command.script()->name() == script ? 1 : 0;
      return false;
    };
    return calls;
  }
  /// How often the node reads all topics from now on.
  static std::shared_ptr<size_t> ReadsOfAllTopics(TestNode& node) {
    auto reads = std::make_shared<size_t>(0);
    node.client().fails = [reads](const Command& command) {
      std::string text;
      command.Encode(text, false);
      *reads += command.hash_slot() == HashSlot("{tocsin}topics") && text.find("HGETALL") != text.npos ? 1 : 0;
      return false;
    };
    return reads;
  }
  /// Each looks after every third group, and hears the others.
  std::vector<std::unique_ptr<TestNode>> ThreeNodes() {
    std::vector<std::unique_ptr<TestNode>> nodes;
    for (uint32_t i = 0; i < 3; ++i) {
      nodes.push_back(Node(fmt::format("{}", i)));
      std::vector<uint32_t> groups;
      for (uint32_t group = i; group < kGroups; group += 3) groups.push_back(group);
      nodes.back()->store().OwnGroups(groups);
      nodes.back()->Pump();
    }
    Quiet();
    for (const auto& node : nodes) Hear(*node);
    return nodes;
  }
  /// Jobs that are stored anywhere.
  size_t Stored() {
    size_t jobs = 0;
    for (uint32_t slot = 0; slot < 64; ++slot) {
      jobs += static_cast<size_t>(Server().Ask({"HLEN", KeysOf(slot).Of(Part::kJob)})->integer);
    }
    return jobs;
  }
  static std::function<bool(const Command&)> Calls(std::string_view script, uint32_t slot) {
    return [script, hash_slot = HashSlot(KeysOf(slot).Of(Part::kMeta))](const Command& command) {
      return command.script() != nullptr && command.script()->name() == script && command.hash_slot() == hash_slot;
    };
  }
};

}  // namespace tocsin::redis
