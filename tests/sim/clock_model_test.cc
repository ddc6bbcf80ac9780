// The embedded store while the machine's clock is set, glitches, sleeps, and the machine boots: against a model that
// knows how much time has really passed. Jobs with a delay follow that time; jobs with a due time follow the wall clock
// as it is at the moment of delivery.
//
//   TOCSIN_SEED=n  runs one seed
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/generator.h"
#include "sim/sim_node.h"

namespace tocsin::sim {
namespace {

using journal::SimNode;
using namespace std::chrono_literals;

constexpr const char* kTopic = "t";

class World {
 public:
  explicit World(uint64_t seed) : seed_(seed), random_(seed) {
    EXPECT_TRUE(node_.Open());
    node_.store().PutTopic(DefaultTopic(kTopic), [](const Status& done) { EXPECT_TRUE(done); });
    node_.Pump();
    steady_ = Now().steady;
    wall_ = Now().utc;
    Recorded();
  }

  void Run(int actions) {
    for (int i = 0; i < actions && !testing::Test::HasFailure(); ++i) {
      Act();
      if (Below(2) == 0) Look();
    }
    while (!jobs_.empty() && !testing::Test::HasFailure()) {
      Pass(1h);
      Look();
    }
  }

  void Submit(const std::string& id, Timeline timeline, Millis in) {
    const NewJob job{.id = id, .timeline = timeline, .delay = in, .due = wall_ + in};
    int accepted = 0;
    node_.store().Submit(kTopic, {&job, 1}, Now(), [&](Result<std::vector<Submitted>> result) {
      accepted += result && result->front().outcome == SubmitOutcome::kAccepted;
    });
    node_.Pump();
    EXPECT_EQ(accepted, 1);
    jobs_[id] = {timeline, (timeline == Timeline::kUtc ? wall_ : steady_) + in};
    Recorded();
  }

  void Pass(Millis by) {
    node_.clock().Advance(by);
    wall_ += by;
    steady_ += by;
  }
  void Step(Millis by) {
    node_.clock().Step(by);
    wall_ += by;
  }

  /// The server is down for a while, in which the clock may be set.
  void Restart(Millis down, Millis step) {
    ASSERT_TRUE(node_.Close());
    Pass(down);
    Step(step);
    ASSERT_TRUE(node_.Open());
    Recorded();
  }

  /// The wall clock alone says how long it took since the last record: it may be wrong by `step`.
  void Reboot(Millis off, Millis step) {
    node_.CutPower(Survive::kNothing, 1);
    node_.clock().Reboot(off);
    wall_ += off;
    Step(step);
    ASSERT_TRUE(node_.Open());
    steady_ = recorded_.steady + std::max(0ms, wall_ - recorded_.utc);
    Recorded();
  }

  /// Exactly the jobs that are due are delivered. Returns them.
  std::set<std::string> Look() {
    EXPECT_EQ(Now(), (Moment{wall_, steady_})) << "seed " << seed_;
    Advance();
    std::set<std::string> due;
    for (const auto& [id, job] : jobs_) {
      if (job.due <= Now().On(job.timeline)) due.insert(id);
    }
    EXPECT_EQ(node_.store().Topics().front().ready, due.size()) << "seed " << seed_;
    std::set<std::string> delivered;
    std::vector<Settlement> settlements;
    node_.store().Claim(kTopic, {10'000}, 10s, Now(), [&](const Result<JobBatch>& batch) {
      ASSERT_TRUE(batch);
      for (const JobView& job : batch->jobs) {
        EXPECT_TRUE(delivered.insert(std::string(job.own_id)).second) << "twice";
        const bool ack = Below(4) > 0;
        settlements.push_back({.token = job.token, .kind = ack ? SettleKind::kAck : SettleKind::kRelease});
        if (ack) jobs_.erase(std::string(job.own_id));
      }
    });
    EXPECT_EQ(delivered, due) << "seed " << seed_;
    if (settlements.empty()) return delivered;
    node_.store().Settle(kTopic, settlements, Now(), [](const Result<std::vector<SettleOutcome>>& outcomes) {
      ASSERT_TRUE(outcomes);
      for (const SettleOutcome outcome : *outcomes) EXPECT_EQ(outcome, SettleOutcome::kOk);
    });
    node_.Pump();
    if (std::ranges::find(settlements, SettleKind::kAck, &Settlement::kind) != settlements.end()) Recorded();
    return delivered;
  }

  uint64_t Below(uint64_t bound) { return random_() % bound; }

 private:
  struct Job {
    Timeline timeline;
    Time due;
  };

  Moment Now() { return node_.clock().Now(); }
  void Recorded() { recorded_ = {wall_, steady_}; }
  Millis UpTo(Millis bound) { return Millis(Below(static_cast<uint64_t>(bound.count()) + 1)); }
  Millis AnyStep() { return Millis(2) + UpTo(Below(2) == 0 ? Millis(2s) : Millis(2h)); }
  Millis AnyStepOrNone() { return Below(2) == 0 ? 0ms : Below(2) == 0 ? AnyStep() : -AnyStep(); }

  void Act() {
    switch (Below(12)) {
      case 0:
        return Step(Below(2) == 0 ? AnyStep() : -AnyStep());
      case 1: {  // a glitch, which somebody may see
        const Millis by = Below(2) == 0 ? AnyStep() : -AnyStep();
        Step(by);
        if (Below(2) == 0) Look();
        Pass(UpTo(2s));
        return Step(-by);
      }
      case 2:
        return Pass(UpTo(1h));  // it sleeps
      case 3:
        return Restart(UpTo(Below(2) == 0 ? Millis(1s) : Millis(1h)), AnyStepOrNone());
      case 4:
        return Reboot(UpTo(Below(2) == 0 ? Millis(1s) : Millis(1h)), AnyStepOrNone());
      case 5:
      case 6:
        return Pass(UpTo(10s));
      default:
        return Submit(fmt::format("j{}", ++number_), Below(2) == 0 ? Timeline::kUtc : Timeline::kSteady,
                      UpTo(Below(2) == 0 ? Millis(5s) : Millis(2h)));
    }
  }

  /// Until nothing is left to do now. The store has to wake for the next job, and not before anything can happen.
  void Advance() {
    Advanced last;
    for (bool more = true; more;) {
      node_.store().Advance(Now(), 1000, [&](Result<Advanced> result) {
        ASSERT_TRUE(result);
        more = result->more;
        last = std::move(*result);
      });
    }
    node_.Pump();
    // The store writes down a step that it sees.
    const Millis moved = (wall_ - steady_) - (recorded_.utc - recorded_.steady);
    if (moved > 1ms || moved < -1ms) Recorded();
    EXPECT_GT(last.next_utc, wall_) << "seed " << seed_;
    EXPECT_GT(last.next_steady, steady_) << "seed " << seed_;
    for (const auto& [id, job] : jobs_) {
      if (job.due <= Now().On(job.timeline)) continue;
      EXPECT_LE(job.timeline == Timeline::kUtc ? last.next_utc : last.next_steady, job.due) << "seed " << seed_;
    }
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
  SimNode node_;
  std::map<std::string, Job> jobs_;
  Time wall_;
  Time steady_;
  Moment recorded_;  // the store's latest record
  int number_ = 0;
};

TEST(ClockModel, RandomStepsGlitchesSleepsRestartsAndReboots) {
  const char* one = std::getenv("TOCSIN_SEED");
  const uint64_t first = one == nullptr ? 1 : std::strtoull(one, nullptr, 10);
  const uint64_t last = one == nullptr ? 8 : first;
  for (uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) World(seed).Run(1'000);
}

TEST(ClockModel, ACorrectedGlitchFiresNothingEarlyAlsoAfterARestart) {
  World world(1);
  world.Submit("absolute", Timeline::kUtc, 30min);
  world.Step(1h);
  world.Pass(1s);
  world.Step(-1h);
  EXPECT_THAT(world.Look(), testing::IsEmpty());
  world.Restart(0ms, 0ms);
  EXPECT_THAT(world.Look(), testing::IsEmpty());
}

TEST(ClockModel, AClockSetForwardWhileTheServerIsDownLeavesDelaysAlone) {
  World world(1);
  world.Submit("relative", Timeline::kSteady, 30min);
  world.Restart(1s, 1h);
  EXPECT_THAT(world.Look(), testing::IsEmpty());
}

TEST(ClockModel, AGlitchAndARestartDoNotMakeADelayLate) {
  World world(1);
  world.Submit("relative", Timeline::kSteady, 15s);
  world.Step(1h);
  world.Look();
  world.Step(-1h);
  world.Restart(15s, 0ms);
  EXPECT_THAT(world.Look(), testing::ElementsAre("relative"));
}

}  // namespace
}  // namespace tocsin::sim
