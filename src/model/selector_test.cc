#include "model/selector.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

const Time kNow = FromMs(1'700'000'000'000);

JobView SomeJob() {
  return {.uid = 7,
          .own_id = "order-17",
          .key = "shop",
          .due = kNow,
          .attempt = 3,
          .reason = "connect: timed out",
          .headers = {{"customer", "ann"}, {"kind", "mail"}},
          .payload = R"({"to":"ann"})",
          .created = kNow - Millis(1000)};
}

TEST(Selector, AnEmptyOneMeansAllJobs) {
  EXPECT_TRUE(Selector{}.Empty());
  EXPECT_TRUE(Matches({}, SomeJob(), kNow));
}

TEST(Selector, EveryPartHasToMatch) {
  const std::pair<Selector, bool> cases[] = {
      {{.ids = {"x", "order-17"}}, true},
      {{.ids = {UidText(7)}}, true},
      {{.ids = {"order-1"}}, false},
      {{.id_prefix = "order-"}, true},
      {{.id_prefix = "rder"}, false},
      {{.key = "shop"}, true},
      {{.key = "sho"}, false},
      {{.header = "customer"}, true},
      {{.header = "customer", .header_value = "ann"}, true},
      {{.header = "customer", .header_value = "mail"}, false},
      {{.header = "absent"}, false},
      {{.payload = "\"ann\""}, true},
      {{.payload = "bob"}, false},
      {{.reason = "timed"}, true},
      {{.reason = "refused"}, false},
      {{.reason_is = "connect: timed out"}, true},
      {{.reason_is = "timed out"}, false},
      {{.holder = "worker"}, false},
      {{.due = {.from = kNow, .to = kNow + Millis(1)}}, true},
      {{.due = {.from = kNow + Millis(1), .to = {}}}, false},
      {{.due = {.from = {}, .to = kNow}}, false},
      {{.created = {.from = {}, .to = kNow}}, true},
      {{.died = {.from = {}, .to = kNow}}, false},
      {{.attempts_min = 3, .attempts_max = 3}, true},
      {{.attempts_min = 4}, false},
      {{.attempts_max = 2}, false},
      {{.key = "shop", .reason = "refused"}, false},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    EXPECT_EQ(Matches(cases[i].first, SomeJob(), kNow), cases[i].second) << i;
    EXPECT_FALSE(cases[i].first.Empty()) << i;
  }
}

TEST(Selector, ATimeThatAJobDoesNotHaveIsInNoRange) {
  JobView job = SomeJob();
  job.due = kNever;
  EXPECT_FALSE(Matches({.due = {.from = kNow, .to = {}}}, job, kNow)) << "it waits for a count";
  EXPECT_FALSE(Matches({.died = {.from = FromMs(0), .to = {}}}, job, kNow));
  EXPECT_TRUE(Matches({.due = {}}, job, kNow));
}

TEST(Selector, ReadyIsScheduledAndDue) {
  const Selector ready{.states = StateSet::Ready()};
  JobView job = SomeJob();
  EXPECT_TRUE(Matches(ready, job, kNow));
  EXPECT_FALSE(Matches(ready, job, kNow - Millis(1)));
  EXPECT_TRUE(ready.states.MayHave(State::kScheduled));
  EXPECT_FALSE(ready.states.MayHave(State::kDead));
  job.state = State::kDead;
  EXPECT_FALSE(Matches(ready, job, kNow));
  StateSet both = StateSet::Of(State::kDead);
  both.Add(StateSet::Ready());
  EXPECT_TRUE(Matches({.states = both}, job, kNow));
  EXPECT_FALSE(Matches(OfState(State::kScheduled), job, kNow));
}

}  // namespace
}  // namespace tocsin
