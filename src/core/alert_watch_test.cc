#include "core/alert_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr AlertLimits kLimits{.due_jobs = 100,
                              .late = 5s,
                              .stalled = 5min,
                              .attempts = 10,
                              .push_failures = 20,
                              .dead_jobs = 3,
                              .future_jobs = 50};

class AlertWatchTest : public ::testing::Test {
 protected:
  static AlertSettings Settings() {
    return {.topics = kLimits, .hold = 60s, .node_silent = 60s, .nearly_full_percent = 90};
  }
  void Restart(const AlertSettings& settings) { watch_ = AlertWatch(settings); }

  /// "backlog orders 101/100"
  std::vector<std::string> Look(const std::vector<TopicFigures>& topics, const NodeReading& node = {}) {
    std::vector<FiguresRow> rows;
    for (const TopicFigures& topic : topics) {
      rows.push_back(RowOf(topic, now_.utc));
      rows.back().push = std::exchange(push_, {});  // only the home shard knows it
    }
    std::vector<const FiguresRow*> pointers;
    for (const FiguresRow& row : rows) pointers.push_back(&row);
    std::vector<std::string> texts;
    found_ = watch_.Look(pointers, node, now_);
    for (const AlertCondition& each : found_) {
      const std::string& about = each.topic.empty() ? each.node : each.topic;
      texts.push_back(fmt::format("{} {} {:.0f}/{:.0f}", each.rule->name, about, each.value, each.threshold));
    }
    return texts;
  }
  void Pass(Millis time) {
    now_.utc += time;
    now_.steady += time;
  }
  static TopicFigures Orders() {
    TopicFigures figures;
    figures.topic = DefaultTopic("orders");
    return figures;
  }
  /// Drains `jobs` in each of so many minutes.
  TopicFigures Drained(uint64_t jobs, uint32_t minutes = AlertWatch::kDrainMinutesMin) {
    TopicFigures figures = Orders();
    figures.scheduled = 1000;
    figures.delivered = figures.acked = 1;
    Look({figures});
    for (uint32_t i = 0; i < minutes; ++i) {
      figures.acked += jobs;
      figures.delivered += jobs;
      Pass(30s);
      Look({figures});
      Pass(30s);
      Look({figures});
    }
    return figures;
  }
  std::vector<std::string> CandidateTexts(size_t max = 10) {
    std::vector<std::string> texts;
    for (const FutureCandidate& each : watch_.Candidates(max, [](const std::string& /*topic*/) { return true; }))
      texts.push_back(fmt::format("{} {}", each.topic, each.limit));
    return texts;
  }

  void SetFuture(std::optional<FutureMinute> full, ClearHours clear = {}) {
    watch_.SetFuture("orders", {full, std::move(clear)});
  }

  Moment now_{FromMs(1'800'000'000'000), FromMs(5'000'000)};
  AlertWatch watch_{Settings()};
  PushTrouble push_;  // of the first topic of the next look
  std::vector<AlertCondition> found_;
};

TEST_F(AlertWatchTest, ABacklogIsMoreDueJobsThanTheThresholdOverAllShards) {
  TopicFigures figures = Orders();
  figures.ready = figures.scheduled = 50;
  EXPECT_THAT(Look({figures, figures}), IsEmpty()) << "100 are not more than 100";
  figures.ready = 51;
  EXPECT_THAT(Look({figures, figures}), ElementsAre("backlog orders 102/100"));
  figures.topic.paused = true;
  EXPECT_THAT(Look({figures, figures}), ElementsAre("backlog orders 102/100")) << "somebody may have forgotten it";
  figures.ready = 0;
  figures.scheduled = 1000;
  EXPECT_THAT(Look({figures}), IsEmpty()) << "jobs to come are no backlog";
}

TEST_F(AlertWatchTest, ATopicHasThresholdsOfItsOwn) {
  TopicFigures figures = Orders();
  figures.ready = figures.scheduled = 60;
  figures.topic.alerts.due_jobs = 59;
  EXPECT_THAT(Look({figures}), ElementsAre("backlog orders 60/59"));
  figures.topic.alerts.due_jobs = 1'000'000'000;
  figures.ready = 5'000;
  EXPECT_THAT(Look({figures}), IsEmpty());
  figures.topic.alerts = {};
  EXPECT_THAT(Look({figures}), ElementsAre("backlog orders 5000/100"));
  figures.topic.alerts.off = true;
  EXPECT_THAT(Look({figures}), IsEmpty());
}

TEST_F(AlertWatchTest, ANodeWithoutThresholdsWatchesOnlyTopicsThatHaveSome) {
  Restart({});
  TopicFigures figures = Orders();
  figures.ready = figures.scheduled = 1'000'000;
  figures.dead = 1'000'000;
  figures.oldest_due = now_.utc - 24h;
  figures.worst.live = {{.attempts = 1000, .uid = 1, .at = now_.steady, .until = now_.steady + 1h}};
  Look({figures});
  Pass(24h);
  EXPECT_THAT(Look({figures}), IsEmpty());
  figures.topic.alerts.dead_jobs = 7;
  EXPECT_THAT(Look({figures}), ElementsAre("dead_letters orders 1000000/7"));
}

TEST_F(AlertWatchTest, LateIsHowLongTheFirstDueJobWaits) {
  TopicFigures here = Orders();
  TopicFigures there = Orders();
  here.ready = here.scheduled = there.ready = there.scheduled = 1;
  here.oldest_due = now_.utc - 1s;
  there.oldest_due = now_.utc - 5s;
  EXPECT_THAT(Look({here, there}), IsEmpty());
  there.oldest_due = now_.utc - 5001ms;
  EXPECT_THAT(Look({here, there}), ElementsAre("late orders 5001/5000"));
  here.topic.paused = there.topic.paused = true;
  EXPECT_THAT(Look({here, there}), IsEmpty()) << "nobody expects them in time";
}

TEST_F(AlertWatchTest, ATopicIsStalledIfDueJobsWaitAndNobodyTakesAny) {
  TopicFigures figures = Orders();
  figures.ready = figures.scheduled = 1;
  Look({figures});
  Pass(5min - 1ms);
  EXPECT_THAT(Look({figures}), IsEmpty());
  Pass(1ms);
  EXPECT_THAT(Look({figures}), ElementsAre("stalled orders 300000/300000"));
  ++figures.delivered;
  EXPECT_THAT(Look({figures}), IsEmpty()) << "somebody took one";
  Pass(5min);
  EXPECT_THAT(Look({figures}), SizeIs(1));
  figures.topic.paused = true;
  EXPECT_THAT(Look({figures}), IsEmpty());
  figures.topic.paused = false;
  Look({figures});
  Pass(5min);
  EXPECT_THAT(Look({figures}), SizeIs(1)) << "counted from when it went on";
  figures.ready = 0;
  EXPECT_THAT(Look({figures}), IsEmpty());
}

TEST_F(AlertWatchTest, PushesThatFailOneAfterTheOther) {
  TopicFigures figures = Orders();
  figures.scheduled = figures.ready = 1;
  push_.failures = 19;
  EXPECT_THAT(Look({figures, figures}), IsEmpty());
  push_.failures = 20;
  EXPECT_THAT(Look({figures, figures}), ElementsAre("push_failures orders 20/20"));
  EXPECT_EQ(SummaryOf(found_[0]), "pushes of topic orders fail: 20 in a row");
  figures.topic.alerts.push_failures = 30;
  push_.failures = 29;
  EXPECT_THAT(Look({figures, figures}), IsEmpty());
  push_.failures = 0;
  EXPECT_THAT(Look({figures, figures}), IsEmpty()) << "a push was confirmed";
}

TEST_F(AlertWatchTest, PushesOfATopicThatIsQuietDoNotFailForEver) {
  TopicFigures figures = Orders();
  figures.scheduled = 1;  // tomorrow
  const PushTrouble failed{.failures = 20, .failed_at = now_.steady};
  const auto look = [&](const TopicFigures& topic) {
    push_ = failed;
    return Look({topic});
  };
  EXPECT_THAT(look(figures), SizeIs(1));
  Pass(60s - 1ms);
  EXPECT_THAT(look(figures), SizeIs(1));
  Pass(1ms);
  EXPECT_THAT(look(figures), IsEmpty()) << "the last jobs have died";
  TopicFigures waits = figures;
  waits.ready = 1;
  EXPECT_THAT(look(waits), SizeIs(1));
  waits.topic.paused = true;
  EXPECT_THAT(look(waits), IsEmpty());
  TopicFigures again = figures;
  again.worst.live = {{.attempts = 1, .uid = 1, .at = now_.steady, .until = now_.steady + 1h}};
  EXPECT_THAT(look(again), SizeIs(1)) << "its next attempt comes";
}

TEST_F(AlertWatchTest, ASinkThatCannotBeOpenedHoldsUpDueJobs) {
  TopicFigures figures = Orders();
  figures.scheduled = 1;
  const PushTrouble broken{.broken_at = now_.steady};
  const auto look = [&] {
    push_ = broken;
    return Look({figures});
  };
  Pass(60s);
  EXPECT_THAT(look(), IsEmpty()) << "no job waits for it";
  figures.ready = 1;
  EXPECT_THAT(look(), ElementsAre("push_failures orders 0/20"));
  EXPECT_EQ(SummaryOf(found_[0]), "pushes of topic orders fail: its sink cannot be opened");
  now_.steady -= 1ms;
  EXPECT_THAT(look(), IsEmpty()) << "it may be open soon";
}

TEST_F(AlertWatchTest, AJobThatFailsAgainAndAgain) {
  TopicFigures here = Orders();
  TopicFigures there = Orders();
  here.scheduled = there.scheduled = 1;
  here.worst.live = {{.attempts = 9, .uid = 1, .at = now_.steady, .until = now_.steady + 1h}};
  EXPECT_THAT(Look({here, there}), IsEmpty());
  there.worst.live = {{.attempts = 10, .uid = 2, .at = now_.steady, .until = now_.steady + 1h}};
  EXPECT_THAT(Look({here, there}), ElementsAre("job_failures orders 10/10"));
  EXPECT_EQ(found_[0].detail, UidText(2));
  Pass(1h + 60s - 1ms);
  EXPECT_THAT(Look({here, there}), SizeIs(1)) << "it may have failed just now";
  Pass(1ms);
  EXPECT_THAT(Look({here, there}), IsEmpty()) << "it was not heard of again: it succeeded";
}

TEST_F(AlertWatchTest, AJobThatDiesAtTheThresholdIsNamedForAWhile) {
  TopicFigures figures = Orders();
  figures.scheduled = 1;
  figures.worst.live = {{.attempts = 3, .uid = 1, .at = now_.steady, .until = now_.steady + 1h}};
  figures.worst.dead = {.attempts = 10, .uid = 2, .at = now_.steady, .until = now_.steady + 30s};
  EXPECT_THAT(Look({figures}), ElementsAre("job_failures orders 10/10"));
  Pass(30s + 60s);
  EXPECT_THAT(Look({figures}), IsEmpty());
  figures.worst.live[0].attempts = 11;
  EXPECT_THAT(Look({figures}), ElementsAre("job_failures orders 11/10"));
}

TEST_F(AlertWatchTest, DeadLetters) {
  TopicFigures figures = Orders();
  figures.dead = 3;
  EXPECT_THAT(Look({figures}), IsEmpty());
  figures.dead = 4;
  EXPECT_THAT(Look({figures}), ElementsAre("dead_letters orders 4/3"));
}

TEST_F(AlertWatchTest, ATopicIsNearlyFull) {
  TopicFigures figures = Orders();
  figures.topic.capacity_jobs = 100;
  figures.scheduled = 80;
  figures.leased = 9;
  EXPECT_THAT(Look({figures}), IsEmpty());
  figures.leased = 10;
  EXPECT_THAT(Look({figures}), ElementsAre("topic_nearly_full orders 90/90"));
  figures.topic.capacity_jobs = 0;
  figures.topic.capacity_bytes = 1000;
  figures.bytes = 950;
  EXPECT_THAT(Look({figures}), ElementsAre("topic_nearly_full orders 95/90"));
}

TEST_F(AlertWatchTest, TheFutureIsLookedAtOnceATopicHasDrainedForSomeMinutes) {
  TopicFigures figures = Drained(70, AlertWatch::kDrainMinutesMin - 1);
  EXPECT_THAT(CandidateTexts(), IsEmpty()) << "its record means little yet";
  figures.acked += 70;
  Look({figures});
  Pass(1min);
  Look({figures});
  EXPECT_THAT(CandidateTexts(), ElementsAre("orders 70"));
}

TEST_F(AlertWatchTest, AMinuteThatHoldsMoreThanWasEverDrained) {
  TopicFigures figures = Drained(70);
  EXPECT_THAT(Look({figures}), IsEmpty());
  SetFuture(FutureMinute{FromMs(1'800'003'600'000), 71});
  EXPECT_THAT(Look({figures}), ElementsAre("future_load orders 71/70"));
  EXPECT_EQ(found_[0].detail, "2027-01-15T09:00Z");
  figures.acked += 71;
  EXPECT_THAT(Look({figures}), IsEmpty()) << "that much was drained in this minute";
}

TEST_F(AlertWatchTest, AMinuteThatHasPassedIsNoMoreToCome) {
  const TopicFigures figures = Drained(70);
  SetFuture(FutureMinute{std::chrono::floor<std::chrono::minutes>(now_.utc) + 1min, 71});
  EXPECT_THAT(Look({figures}), SizeIs(1));
  Pass(2min);
  EXPECT_THAT(Look({figures}), IsEmpty());
}

TEST_F(AlertWatchTest, TheSearchMayFindThatItIsOver) {
  const TopicFigures figures = Drained(70);
  SetFuture(FutureMinute{now_.utc + 1h, 71});
  EXPECT_THAT(Look({figures}), SizeIs(1));
  SetFuture(std::nullopt);
  EXPECT_THAT(Look({figures}), IsEmpty());
}

TEST_F(AlertWatchTest, FewJobsInAMinuteAreNoAlert) {
  TopicFigures figures = Drained(2);
  EXPECT_THAT(CandidateTexts(), ElementsAre("orders 50")) << "the threshold, not the record";
  figures.scheduled = 50;
  Look({figures});
  EXPECT_THAT(CandidateTexts(), IsEmpty()) << "no minute can hold more";
}

TEST_F(AlertWatchTest, JobsOfAMinuteThatWasNotLookedAtAreSharedOut) {
  TopicFigures figures = Drained(70);
  figures.acked += 1000;
  Pass(10min);
  Look({figures});
  EXPECT_THAT(CandidateTexts(), ElementsAre("orders 100")) << "1000 in ten minutes";
}

TEST_F(AlertWatchTest, CandidatesTakeTurns) {
  std::vector<TopicFigures> topics;
  for (const char* name : {"a", "b", "c"}) {
    topics.push_back(Orders());
    topics.back().topic.name = name;
    topics.back().scheduled = 1000;
  }
  for (int i = 0; i < 4; ++i) {
    Look(topics);
    for (TopicFigures& topic : topics) topic.acked += 100;
    Look(topics);
    Pass(1min);
  }
  Look(topics);
  EXPECT_THAT(CandidateTexts(2), ElementsAre("a 100", "b 100"));
  EXPECT_FALSE(watch_.pass_over());
  Look(topics);
  EXPECT_THAT(CandidateTexts(2), ElementsAre("c 100"));
  EXPECT_TRUE(watch_.pass_over());
  EXPECT_THAT(CandidateTexts(2), ElementsAre("a 100", "b 100"));
}

TEST_F(AlertWatchTest, OnlyTheNodeThatPostsSearchesATopic) {
  const TopicFigures figures = Drained(70);
  const auto candidates = [&](bool mine) {
    return watch_.Candidates(10, [mine](const std::string& /*topic*/) { return mine; });
  };
  SetFuture(FutureMinute{now_.utc + 1h, 71}, {{now_.utc, ClearHour{.jobs = 80, .fullest = 60, .searched = now_.utc}}});
  ASSERT_THAT(candidates(true), SizeIs(1));
  EXPECT_THAT(candidates(true)[0].clear, SizeIs(1)) << "what the last search has learned";
  EXPECT_THAT(Look({figures}), SizeIs(1));
  EXPECT_THAT(candidates(false), IsEmpty());
  EXPECT_TRUE(watch_.pass_over());
  EXPECT_THAT(Look({figures}), IsEmpty()) << "another node knows better";
}

TEST_F(AlertWatchTest, ATopicThatIsGoneIsForgotten) {
  TopicFigures figures = Drained(70);
  SetFuture(FutureMinute{now_.utc + 1h, 71});
  Look({});
  EXPECT_THAT(Look({figures}), IsEmpty()) << "it is another one";
  EXPECT_THAT(CandidateTexts(), IsEmpty());
}

TEST_F(AlertWatchTest, ANodeThatVanished) {
  NodeReading node;
  node.vanished = {
      {"n2-1", now_.utc - 59s}, {"n3-1", now_.utc - 60s}, {"n4-1", now_.utc - AlertWatch::kVanishedKept - 1s}};
  EXPECT_THAT(Look({}, node), ElementsAre("node_silent n3-1 60000/60000"));
}

TEST_F(AlertWatchTest, TheNodesOwnTrouble) {
  NodeReading node{.disk_size = 1000, .disk_free = 101, .memory_limit = 1000, .memory_used = 899};
  EXPECT_THAT(Look({}, node), IsEmpty());
  node.disk_free = 100;
  node.memory_used = 900;
  EXPECT_THAT(Look({}, node), ElementsAre("disk_nearly_full  90/90", "memory_nearly_full  90/90"));
  node = {.disk_full = true, .outage = "Redis does not answer"};
  EXPECT_THAT(Look({}, node), ElementsAre("store_away  0/0", "disk_full  0/0"));
  EXPECT_EQ(found_[0].detail, "Redis does not answer");
  node = {.outbox_outage = "MySQL does not answer"};
  EXPECT_THAT(Look({}, node), ElementsAre("outbox_away  0/0"));
  EXPECT_EQ(found_[0].detail, "MySQL does not answer");
}

}  // namespace
}  // namespace tocsin
