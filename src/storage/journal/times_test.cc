// What jobs remember survives restarts, power cuts and copying forward.
#include <gtest/gtest.h>

#include "sim/sim_node.h"

namespace tocsin::journal {
namespace {

using namespace std::chrono_literals;

class TimesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(node_.Open());
    Topic topic = DefaultTopic("t");
    topic.max_attempts = 2;
    topic.retention = 24h;
    node_.store().PutTopic(topic, [](const auto& done) { ASSERT_TRUE(done); });
    node_.Pump();
  }

  Moment Now() { return node_.clock().Now(); }

  void Advance() {
    for (bool more = true; more;) {
      node_.store().Advance(Now(), 1000, [&](const auto& advanced) { more = advanced && advanced->more; });
      node_.Pump();
    }
  }

  void Submit(std::string_view id, Millis delay = 0ms, std::string_view payload = "payload") {
    const NewJob job{.id = id, .delay = delay, .payload = payload};
    node_.store().Submit("t", {&job, 1}, Now(), [](const auto& done) { ASSERT_TRUE(done); });
    node_.Pump();
  }

  Token Claim(std::string_view holder = {}) {
    Advance();
    Token token;
    node_.store().Claim("t", {.jobs = 1, .holder = holder}, 1h, Now(), [&](const Result<JobBatch>& batch) {
      ASSERT_TRUE(batch);
      ASSERT_EQ(batch->jobs.size(), 1U);
      token = batch->jobs[0].token;
    });
    return token;
  }

  void Settle(const Settlement& how) {
    node_.store().Settle("t", {&how, 1}, Now(), [](const auto& done) {
      ASSERT_TRUE(done);
      ASSERT_NE(done->at(0), SettleOutcome::kStale);
    });
    node_.Pump();
  }

  JobView Find(std::string_view id) {
    const JobRef ref{.id = id};
    node_.store().Find("t", {&ref, 1}, nullptr, Now(), [&](Result<JobBatch> batch) { last_ = std::move(*batch); });
    return last_.jobs.at(0);
  }

  /// A job that waits after a failure, a dead one, a done one and a cancelled one, each a minute after the one before.
  void Fill() {
    begun_ = Now().utc;
    const auto attempt = [&](std::string_view id, SettleKind kind) {
      Submit(id);
      const Token token = Claim("ann");
      node_.clock().Advance(1s);
      Settle({.token = token, .kind = kind, .delay = 1000h});
      node_.clock().Advance(59s);
    };
    attempt("waits", SettleKind::kNack);
    attempt("dead", SettleKind::kBury);
    attempt("done", SettleKind::kAck);
    Submit("cancelled", 1h);
    node_.clock().Advance(1s);
    const Amendment cancel{.job = {"cancelled", {}}, .kind = AmendKind::kCancel};
    node_.store().Amend("t", {&cancel, 1}, Now(), [](const auto& done) { ASSERT_TRUE(done); });
    node_.Pump();
  }

  void Expect() {
    const auto at = [this](Millis after) { return begun_ + after; };
    JobView job = Find("waits");
    EXPECT_EQ(job.state, State::kScheduled);
    EXPECT_EQ(job.created, at(0s));
    EXPECT_EQ(job.last_attempt, at(0s));
    EXPECT_EQ(job.died, Time{});
    EXPECT_EQ(job.finished, Time{});
    job = Find("dead");
    EXPECT_EQ(job.state, State::kDead);
    EXPECT_EQ(job.created, at(60s));
    EXPECT_EQ(job.last_attempt, at(60s));
    EXPECT_EQ(job.died, at(61s));
    EXPECT_EQ(job.finished, Time{});
    job = Find("done");
    EXPECT_EQ(job.state, State::kDone);
    EXPECT_EQ(job.last_attempt, at(120s));
    EXPECT_EQ(job.died, Time{});
    EXPECT_EQ(job.finished, at(121s));
    job = Find("cancelled");
    EXPECT_EQ(job.state, State::kCancelled);
    EXPECT_EQ(job.last_attempt, Time{});
    EXPECT_EQ(job.finished, at(181s));
  }

  SimNode node_;
  Time begun_{};
  JobBatch last_;
};

TEST_F(TimesTest, SurviveARestartAndAPowerCut) {
  Fill();
  Expect();
  ASSERT_TRUE(node_.CloseAndOpen());
  Expect();
  node_.CutPower(Survive::kNothing, 1);
  ASSERT_TRUE(node_.Open());
  Expect();
}

TEST_F(TimesTest, SurviveCopyingForward) {
  Fill();
  const uint64_t first = node_.node().journal().first_needed();
  const std::string payload(2'000, 'x');
  // Much passes through, so that the segments with the puts and the moves are emptied.
  for (int i = 0; node_.node().journal().first_needed() < first + 5; ++i) {
    ASSERT_LT(i, 2'000);
    const std::string id = fmt::format("passes-{}", i);
    Submit(id, 0ms, payload);
    const Amendment remove{.job = {id, {}}, .kind = AmendKind::kRemove};
    node_.store().Amend("t", {&remove, 1}, Now(), [](const auto& done) { ASSERT_TRUE(done); });
    Advance();
  }
  Expect();
  ASSERT_TRUE(node_.CloseAndOpen());
  Expect();
  const JobView job = Find("waits");
  EXPECT_EQ(job.attempt, 1U);
}

TEST_F(TimesTest, FollowTheWallClockAsTheyAreShown) {
  Fill();
  node_.clock().Step(1h);
  begun_ += 1h;  // what happened three minutes ago did so by the clock as it is now
  Expect();
  EXPECT_EQ(Now().utc - Find("cancelled").finished, 0s);
}

TEST_F(TimesTest, HoldersAreChargedAndForgotten) {
  Submit("a");
  Advance();
  const uint64_t before = node_.node().memory_bytes();
  const std::string name(kHolderBytesMax, 'n');
  const Token token = Claim(name);
  Advance();
  EXPECT_GE(node_.node().memory_bytes(), before + name.size());
  EXPECT_EQ(Find("a").holder, name);
  Settle({.token = token, .kind = SettleKind::kRelease});
  Advance();
  EXPECT_EQ(node_.node().memory_bytes(), before);
}

TEST_F(TimesTest, LeasesAreForgottenByARestart) {
  Submit("a");
  Claim("ann");
  ASSERT_TRUE(node_.CloseAndOpen());
  const JobView job = Find("a");
  EXPECT_EQ(job.state, State::kScheduled);
  EXPECT_EQ(job.holder, "");
  EXPECT_EQ(job.last_attempt, Time{}) << "the attempt was not used up";
}

}  // namespace
}  // namespace tocsin::journal
