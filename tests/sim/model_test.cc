// The embedded store against the oracle: the same random operations at the same moments, and every answer, every figure
// and every stored job has to be the same; across restarts, power cuts, steps of the clock and years of waiting.
// Segments are so small that jobs are copied forward all the time.
//
//   TOCSIN_SEED=n              runs one seed
//   TOCSIN_MODEL_OPERATIONS=n  operations, over all seeds
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "sim/generator.h"
#include "sim/sim_node.h"
#include "spi/contract/memory_store.h"

namespace tocsin::sim {
namespace {

using journal::SimNode;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

struct Tally {
  uint64_t restarts = 0;
  uint64_t power_cuts = 0;
  uint64_t segments = 0;
};

class Pair {
 public:
  Pair(uint64_t seed, Tally& tally) : seed_(seed), tally_(tally), generator_(seed, {}), node_(Options()) {
    EXPECT_TRUE(node_.Open());
    expected_.store = &oracle_;
    stored_.store = &node_.store();
  }

  void Run(uint64_t operations) {
    for (const Operation& operation : generator_.Begin()) Step(operation);
    while (step_ < operations && !testing::Test::HasFailure()) {
      PassTime();
      const Operation operation = generator_.Next(expected_, Now());
      generator_.Learn(Step(operation), expected_);
      if (operation.text == "advance") CheckWakeUps();
      if (generator_.Below(500) == 0) Restart();
      if (step_ % 1'000 == 0) CheckState("at rest");
    }
    tally_.segments += node_.node().journal().last_segment();
  }

 private:
  static journal::Options Options() {
    journal::Options options = SimNode::SmallOptions();
    options.segment_bytes = 16 << 10;
    return options;
  }

  Moment Now() { return node_.clock().Now(); }

  void PassTime() {
    node_.clock().Advance(generator_.Wait());
    if (generator_.Below(300) == 0) {
      const auto span = static_cast<int64_t>(generator_.Below(3'600'000));
      node_.clock().Step(Millis(generator_.Chance(50) ? span : -span));
    }
  }

  std::string Where() const { return fmt::format("seed {} step {}", seed_, step_); }

  /// Returns the oracle's answer.
  Reply Step(const Operation& operation) {
    ++step_;
    const Moment now = Now();
    Reply expected;
    operation.run(expected_, now, [&](Reply reply) { expected = std::move(reply); });
    std::optional<Reply> stored;
    operation.run(stored_, now, [&](Reply reply) { stored = std::move(reply); });
    if (!stored) node_.Pump();
    if (!stored) {
      ADD_FAILURE() << Where() << ": " << operation.text << "\nno answer";
    } else if (stored->ok != expected.ok || (expected.ok && stored->text != expected.text) ||
               stored->text.contains("early")) {
      ADD_FAILURE() << Where() << ": " << operation.text << "\nstored:   " << stored->text
                    << "\nexpected: " << expected.text;
    }
    return expected;
  }

  void CheckWakeUps() {
    const Moment now = Now();
    EXPECT_LE(stored_.next.steady, expected_.next.steady) << Where();
    EXPECT_LE(stored_.next.utc, expected_.next.utc) << Where();
    EXPECT_GT(stored_.next.steady, now.steady) << Where();
    EXPECT_GT(stored_.next.utc, now.utc) << Where();
    for (const TopicFigures& figures : oracle_.Topics()) {
      if (figures.ready == 0 || figures.topic.paused) continue;
      EXPECT_TRUE(stored_.announced.contains(figures.topic.name))
          << Where() << ": " << figures.topic.name << " has jobs and was not announced";
    }
  }

  void CheckState(std::string_view when) {
    Step(Advance());
    node_.Pump();
    const std::string stored = Dump(node_.store(), Now());
    const std::string expected = Dump(oracle_, Now());
    if (stored != expected) ADD_FAILURE() << Where() << " " << when << "\n" << Difference(stored, expected);
  }

  void Restart() {
    // The last record carries the present moment, so that the clock goes on exactly there.
    Step(PutTopic(DefaultTopic("clock")));
    Step(Submit("clock", {OwnedJob{.max_attempts = 1}}));
    Step(Sweep("clock", SweepKind::kPurge, 10));
    node_.Pump();
    if (generator_.Chance(50)) {
      ++tally_.restarts;
      ASSERT_TRUE(node_.CloseAndOpen());
    } else {
      ++tally_.power_cuts;
      node_.CutPower(generator_.Chance(50) ? Survive::kNothing : Survive::kSectors, generator_.Below(1'000'000));
      const Status opened = node_.Open();
      ASSERT_TRUE(opened) << Where() << ": " << opened.error().message;
    }
    stored_.store = &node_.store();
    stored_.announced.clear();
    expected_.announced.clear();
    oracle_.Reopen();
    CheckState("after a restart");
  }

  const uint64_t seed_;
  Tally& tally_;
  Generator generator_;
  SimNode node_;
  MemoryStore oracle_;
  Side stored_;
  Side expected_;
  uint64_t step_ = 0;
};

void RunSeeds(uint64_t operations) {
  constexpr uint64_t kOperationsPerSeed = 20'000;
  const uint64_t first = FromEnvironment("TOCSIN_SEED", 1);
  const bool one = std::getenv("TOCSIN_SEED") != nullptr;
  Tally tally;
  uint64_t done = 0;
  for (uint64_t seed = first; done < operations && !testing::Test::HasFailure(); ++seed) {
    Pair(seed, tally).Run(kOperationsPerSeed);
    done += kOperationsPerSeed;
    if (one) break;
  }
  std::cout << fmt::format("{} operations from seed {}: {} segments written, {} restarts, {} power cuts\n", done, first,
                           tally.segments, tally.restarts, tally.power_cuts);
}

TEST(Model, StoreAndOracleAgree) { RunSeeds(FromEnvironment("TOCSIN_MODEL_OPERATIONS", 300'000)); }

}  // namespace
}  // namespace tocsin::sim
