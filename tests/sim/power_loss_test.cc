// A power cut at every write, sync and change of names of a fixed script, and what the disk keeps of the unsynced data
// chosen in several ways: nothing acknowledged is lost, nothing is half done, and the journal opens and goes on.
#include <iostream>

#include <gtest/gtest.h>

#include "sim/script.h"

namespace tocsin::sim {
namespace {

constexpr size_t kOperations = 250;

struct Choice {
  Survive survive;
  uint64_t seeds;
};
constexpr Choice kChoices[] = {
    {Survive::kNothing, 1}, {Survive::kPrefix, 2}, {Survive::kSectors, 3}, {Survive::kTorn, 2}, {Survive::kAll, 1}};

TEST(PowerLoss, AtEveryIoOfAScript) {
  const Script script = MakeScript(1, kOperations);
  ScriptRun dry(script);
  dry.Run();
  ASSERT_EQ(dry.wrong(), "");
  ASSERT_EQ(dry.error(), "");
  const uint64_t ios = dry.disk().IoCount();
  const uint64_t segments = dry.node().node().journal().last_segment();
  EXPECT_GE(segments, 6);
  EXPECT_GE(dry.node().node().journal().first_needed(), 2) << "no segment was emptied and used again";

  uint64_t checks = 0;
  for (uint64_t io = 0; io < ios; ++io) {
    ScriptRun run(script);
    run.disk().LosePowerAt(io);
    run.Run();
    ASSERT_EQ(run.wrong(), "") << "power lost at " << io;
    ASSERT_TRUE(run.disk().PowerLost());
    for (const Choice& choice : kChoices) {
      for (uint64_t seed = 0; seed < choice.seeds; ++seed) {
        ++checks;
        ASSERT_EQ(CheckSurvivors(script, run, run.disk().Survivors(choice.survive, io * 10 + seed),
                                 run.node().clock().Now(), run.side().tokens),
                  "")
            << "power lost at " << io << ", of the unsynced data survives " << static_cast<int>(choice.survive)
            << ", seed " << io * 10 + seed;
      }
    }
  }
  std::cout << fmt::format("{} operations, {} segments, {} crash points, {} survivors checked\n", kOperations, segments,
                           ios, checks);
}

/// The power goes again while the journal recovers from the first cut.
TEST(PowerLoss, DuringRecovery) {
  const Script script = MakeScript(2, kOperations);
  ScriptRun dry(script);
  dry.Run();
  const uint64_t ios = dry.disk().IoCount();
  uint64_t points = 0;
  for (uint64_t io = 5; io < ios; io += 13) {
    ScriptRun run(script);
    run.disk().LosePowerAt(io);
    run.Run();
    for (uint64_t recovery_io = 0;; ++recovery_io) {
      SimNode again(Script::Options(), run.disk().Survivors(Survive::kSectors, io));
      again.clock().Advance(run.node().clock().Now().utc - again.clock().Now().utc);
      again.disk().LosePowerAt(recovery_io);
      const Status opened = again.Open();
      if (opened) again.Pump();
      if (!again.disk().PowerLost()) break;
      ++points;
      const auto choice = static_cast<Survive>(recovery_io % 5);
      ASSERT_EQ(CheckSurvivors(script, run, again.disk().Survivors(choice, io), run.node().clock().Now(), {}), "")
          << "power lost at " << io << " and again at " << recovery_io << " of the recovery, choice "
          << static_cast<int>(choice);
    }
  }
  std::cout << fmt::format("{} crash points of recoveries\n", points);
}

}  // namespace
}  // namespace tocsin::sim
