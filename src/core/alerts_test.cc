#include "core/alerts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Millis kHold = 60s;
constexpr Millis kRepeat = 4h;

AlertCondition Backlog(std::string topic, double value = 200) {
  return {&RuleOf(AlertRuleId::kBacklog), std::move(topic), {}, value, 100, {}};
}
AlertCondition Dead(std::string topic) {
  return {&RuleOf(AlertRuleId::kDeadLetters), std::move(topic), {}, 11, 10, {}};
}

const AlertCondition kFull{&RuleOf(AlertRuleId::kDiskFull), {}, {}, 0, 0, {}};

std::vector<AlertCondition> DeadTopics(size_t count) {
  std::vector<AlertCondition> many;
  for (size_t i = 0; i < count; ++i) many.push_back(Dead(fmt::format("t{}", i)));
  return many;
}

bool Mine(const AlertCondition& /*condition*/) { return true; }

class AlertBookTest : public ::testing::Test {
 protected:
  void Look(const std::vector<AlertCondition>& conditions) { book_.Update(conditions, now_, kHold); }
  void Pass(Millis time) {
    now_.utc += time;
    now_.steady += time;
  }
  /// "firing backlog orders"
  std::vector<std::string> Listed() const {
    std::vector<std::string> all;
    const auto listing = book_.List();
    for (const Alert& alert : listing->alerts) {
      all.push_back(fmt::format("{} {} {}", kAlertStateNames[static_cast<size_t>(alert.state)],
                                alert.condition.rule->name, alert.condition.topic));
    }
    return all;
  }
  std::vector<Alert> ToPost(size_t max = 100) { return book_.ToPost(now_.steady, kRepeat, max, Mine); }
  /// What is to be posted, as it is posted.
  std::vector<std::string> Post(size_t max = 100) {
    std::vector<std::string> posted;
    const std::vector<Alert> alerts = ToPost(max);
    for (const Alert& alert : alerts) {
      posted.push_back(fmt::format("{} {}", kAlertStateNames[static_cast<size_t>(alert.state)], alert.condition.topic));
    }
    book_.Posted(alerts, now_.steady);
    return posted;
  }
  /// Posts until there is nothing left to post; how many alerts that were.
  size_t PostAll() {
    size_t posted = 0;
    for (size_t some = 1; some > 0; posted += some) some = Post(500).size();
    return posted;
  }

  AlertBook book_{AlertOrigin{.instance = "n1", .cluster = {}}};
  Moment now_{FromMs(1'800'000'000'000), FromMs(5'000'000)};
};

TEST_F(AlertBookTest, AnAlertFiresWhenItsConditionHasLasted) {
  Look({Backlog("orders")});
  EXPECT_THAT(Listed(), ElementsAre("pending backlog orders"));
  Pass(kHold - 1ms);
  Look({Backlog("orders")});
  EXPECT_THAT(Listed(), ElementsAre("pending backlog orders"));
  Pass(1ms);
  Look({Backlog("orders", 300)});
  EXPECT_THAT(Listed(), ElementsAre("firing backlog orders"));
  const Alert alert = book_.List()->alerts.front();
  EXPECT_EQ(alert.starts_at, now_.utc);
  EXPECT_EQ(alert.condition.value, 300) << "as last seen";
  EXPECT_EQ(book_.List()->firing[static_cast<size_t>(AlertRuleId::kBacklog)], 1U);
}

TEST_F(AlertBookTest, AConditionThatPassesSoonIsForgotten) {
  Look({Backlog("orders")});
  Pass(30s);
  Look({});
  EXPECT_THAT(Listed(), IsEmpty());
  Look({Backlog("orders")});
  Pass(kHold - 1ms);
  Look({Backlog("orders")});
  EXPECT_THAT(Listed(), ElementsAre("pending backlog orders")) << "its time begins again";
}

TEST_F(AlertBookTest, AnAlertIsResolvedWhenItsConditionHasBeenGone) {
  Look({Backlog("orders")});
  Pass(kHold);
  Look({Backlog("orders")});
  const Time fired = now_.utc;
  Pass(kHold);
  Look({Backlog("orders")});
  Pass(kHold - 1ms);
  Look({});
  EXPECT_THAT(Listed(), ElementsAre("firing backlog orders")) << "it may come back at once";
  Pass(1ms);
  Look({});
  EXPECT_THAT(Listed(), ElementsAre("resolved backlog orders"));
  const Alert alert = book_.List()->alerts.front();
  EXPECT_EQ(alert.starts_at, fired);
  EXPECT_EQ(alert.ends_at, now_.utc);
  EXPECT_EQ(book_.List()->firing[static_cast<size_t>(AlertRuleId::kBacklog)], 0U);
}

TEST_F(AlertBookTest, ARuleAboutWhatHasHappenedDoesNotWait) {
  Look({Dead("orders")});
  EXPECT_THAT(Listed(), ElementsAre("firing dead_letters orders"));
  Look({});
  EXPECT_THAT(Listed(), ElementsAre("resolved dead_letters orders"));
}

TEST_F(AlertBookTest, TimesFollowElapsedTimeAndAreShownInUtc) {
  Look({Backlog("orders")});
  now_.utc += 24h;  // somebody sets the clock
  Look({Backlog("orders")});
  EXPECT_THAT(Listed(), ElementsAre("pending backlog orders"));
  now_.utc -= 48h;
  now_.steady += kHold;
  Look({Backlog("orders")});
  EXPECT_EQ(book_.List()->alerts.front().starts_at, now_.utc);
  now_.utc -= 1h;
  now_.steady += kHold;
  Look({});
  const Alert alert = book_.List()->alerts.front();
  EXPECT_EQ(alert.state, AlertState::kResolved);
  EXPECT_GE(alert.ends_at, alert.starts_at) << "it never ends before it began";
}

TEST_F(AlertBookTest, ThoseThatFireComeFirst) {
  Look({Backlog("late"), Dead("a")});
  Pass(1s);
  Look({Backlog("late"), Dead("b")});
  EXPECT_THAT(Listed(), ElementsAre("firing dead_letters b", "pending backlog late", "resolved dead_letters a"));
}

TEST_F(AlertBookTest, WhatIsOverIsKeptForAnHourAndUpToALimit) {
  Look({Dead("orders")});
  Look({});
  Pass(AlertBook::kResolvedKept - 1ms);
  Look({});
  EXPECT_THAT(Listed(), SizeIs(1));
  Pass(1ms);
  Look({});
  EXPECT_THAT(Listed(), IsEmpty());
  Look(DeadTopics(AlertBook::kResolvedMax + 5));
  Look({});
  EXPECT_THAT(Listed(), SizeIs(AlertBook::kResolvedMax));
}

TEST_F(AlertBookTest, WhatFindsNoRoomIsCountedAndNodesHaveRoomOfTheirOwn) {
  constexpr size_t kTopicsMax = AlertBook::kAlertsMax - AlertBook::kOfNodesMax;
  std::vector<AlertCondition> many = DeadTopics(kTopicsMax + 7);
  many.push_back(kFull);
  Look(many);
  EXPECT_EQ(book_.List()->alerts.size(), kTopicsMax + 1);
  EXPECT_EQ(book_.List()->left_out, 7U);
  EXPECT_THAT(Post(1), ElementsAre("firing ")) << "what is critical before 9,900 others";
  Look({Dead("t1")});
  EXPECT_EQ(book_.List()->left_out, 0U);
}

TEST_F(AlertBookTest, AListingStaysAsItIs) {
  Look({Dead("orders")});
  const auto listing = book_.List();
  Look({});
  Look({});
  EXPECT_EQ(listing->alerts.front().state, AlertState::kFiring);
  EXPECT_EQ(listing->firing[static_cast<size_t>(AlertRuleId::kDeadLetters)], 1U);
  EXPECT_THAT(Listed(), ElementsAre("resolved dead_letters orders"));
}

TEST_F(AlertBookTest, PostsWhatFiresOnceAndAgainAfterAWhile) {
  Look({Dead("orders"), Backlog("late")});
  EXPECT_THAT(Post(), ElementsAre("firing orders")) << "nothing is said of what is pending";
  EXPECT_THAT(Post(), IsEmpty());
  Pass(kRepeat - 1ms);
  EXPECT_THAT(Post(), IsEmpty());
  Pass(1ms);
  EXPECT_THAT(Post(), ElementsAre("firing orders"));
  EXPECT_THAT(book_.ToPost(now_.steady + 1000h, Millis(0), 100, Mine), IsEmpty()) << "0: never again";
}

TEST_F(AlertBookTest, PostsWhatIsResolved) {
  Look({Dead("orders")});
  Post();
  Look({});
  EXPECT_THAT(Post(), ElementsAre("resolved orders"));
  Pass(kRepeat);
  EXPECT_THAT(Post(), IsEmpty()) << "once";
}

TEST_F(AlertBookTest, WhatTheReceiverDidNotTakeIsPostedAgainAsItIsThen) {
  Look({Dead("orders")});
  EXPECT_THAT(ToPost(), SizeIs(1));
  EXPECT_THAT(ToPost(), SizeIs(1)) << "nobody said that it arrived";
  const std::vector<Alert> under_way = ToPost();
  Look({});
  book_.Posted(under_way, now_.steady);
  EXPECT_THAT(Post(), ElementsAre("resolved orders")) << "it was over before the receiver had it";
}

TEST_F(AlertBookTest, AnAlertThatFiresAgainIsAnotherOne) {
  Look({Dead("orders")});
  const std::vector<Alert> first = ToPost();
  Look({});
  Look({Dead("orders")});
  book_.Posted(first, now_.steady);
  EXPECT_THAT(Post(), ElementsAre("resolved orders", "firing orders"));
}

TEST_F(AlertBookTest, WhateverWasPostedAsFiringIsPostedAsResolved) {
  constexpr size_t kMany = 3000;
  Look(DeadTopics(kMany));
  EXPECT_EQ(PostAll(), kMany);
  Look({});
  EXPECT_THAT(Listed(), SizeIs(AlertBook::kResolvedMax));
  EXPECT_EQ(PostAll(), kMany);
  Look({});
  EXPECT_EQ(PostAll(), 0U);
}

TEST_F(AlertBookTest, AReceiverThatIsAwayForLongHearsOfTheEndAllTheSame) {
  Look({Dead("known"), Dead("lost")});
  EXPECT_THAT(Post(1), ElementsAre("firing known"));
  EXPECT_THAT(ToPost(), SizeIs(1)) << "a post without an answer: the receiver may have it";
  Look({Dead("unheard")});
  Look({});
  Pass(2 * AlertBook::kResolvedKept);
  Look({});
  EXPECT_THAT(Listed(), IsEmpty()) << "that is long ago";
  EXPECT_THAT(Post(), ElementsAre("resolved known", "resolved lost"));
  EXPECT_THAT(Post(), IsEmpty());
}

TEST_F(AlertBookTest, EndsThatAreOwedHaveALimit) {
  constexpr size_t kTopicsMax = AlertBook::kAlertsMax - AlertBook::kOfNodesMax;
  for (int i = 0; i < 2; ++i) {
    Look(DeadTopics(kTopicsMax));
    EXPECT_GE(ToPost(2 * kTopicsMax).size(), kTopicsMax) << "nobody says that they arrived";
    Look({});
  }
  EXPECT_EQ(PostAll(), AlertBook::kAlertsMax);
}

TEST_F(AlertBookTest, ANodeThatSaidThatAnAlertFiresSaysThatItIsOver) {
  const auto none = [](const AlertCondition& /*condition*/) { return false; };
  Look({Dead("a"), Dead("b")});
  Post();
  Look({Dead("c")});
  EXPECT_THAT(book_.ToPost(now_.steady, kRepeat, 100, none), IsEmpty()) << "another node should do it";
  Pass(AlertBook::kOthersLate);
  EXPECT_THAT(book_.ToPost(now_.steady, kRepeat, 100, none), SizeIs(2)) << "but what fires now";
  Look({Dead("a")});
  EXPECT_THAT(book_.ToPost(now_.steady, kRepeat, 100, none), SizeIs(1)) << "that node has said that it fires again";
}

TEST_F(AlertBookTest, NewsComesBeforeRepetitionsAndTheOldestFirst) {
  Look({Dead("z")});
  Post();
  Pass(kRepeat);
  Look({Dead("z"), Dead("y")});
  Look({Dead("z"), Dead("y"), Dead("x"), kFull});
  EXPECT_THAT(Post(), ElementsAre("firing ", "firing y", "firing x", "firing z"));
}

TEST_F(AlertBookTest, OnePostHasALimitAndTheOthersFollow) {
  Look({Dead("a"), Dead("b"), Dead("c")});
  EXPECT_THAT(Post(2), ElementsAre("firing a", "firing b"));
  EXPECT_THAT(Post(2), ElementsAre("firing c"));
}

TEST_F(AlertBookTest, LeavesOutWhatAnotherNodePosts) {
  Look({Dead("a"), Dead("b")});
  const auto only_b = [](const AlertCondition& condition) { return condition.topic == "b"; };
  EXPECT_THAT(book_.ToPost(now_.steady, kRepeat, 100, only_b), SizeIs(1));
}

TEST(AlertOrigin, LabelsTellServersApartAndNodesOfOneClusterNot) {
  const auto text = [](const AlertOrigin& origin, const AlertCondition& condition) {
    std::string all;
    for (const auto& [name, value] : origin.LabelsOf({.condition = condition}))
      all += fmt::format("{}={} ", name, value);
    return all;
  };
  const AlertOrigin alone{.instance = "n1", .cluster = {}};
  const AlertOrigin first{.instance = "n1", .cluster = "shop"};
  const AlertOrigin second{.instance = "n2", .cluster = "shop"};
  EXPECT_EQ(text(alone, Dead("orders")), "alertname=TocsinDeadLetters instance=n1 severity=warning topic=orders ");
  EXPECT_EQ(text(first, Dead("orders")), "alertname=TocsinDeadLetters cluster=shop severity=warning topic=orders ");
  EXPECT_EQ(text(first, Dead("orders")), text(second, Dead("orders"))) << "both see the same topic";
  const AlertCondition late{&RuleOf(AlertRuleId::kLate), "orders", {}, 1, 1, {}};
  EXPECT_EQ(text(first, late), "alertname=TocsinLate cluster=shop instance=n1 severity=warning topic=orders ")
      << "each sees the jobs of its own groups";
  const AlertCondition silent{&RuleOf(AlertRuleId::kNodeSilent), {}, "n3-1f", 1, 1, {}};
  EXPECT_EQ(text(first, silent), "alertname=TocsinNodeSilent cluster=shop node=n3-1f severity=critical ");
  EXPECT_EQ(text(first, {&RuleOf(AlertRuleId::kDiskFull), {}, {}, 0, 0, {}}),
            "alertname=TocsinDiskFull cluster=shop instance=n1 severity=critical ");
}

TEST(Fingerprint, IsThatOfPrometheus) {
  // FNV-1a over names and values, with a byte 255 after each (model.LabelSet of prometheus/common).
  EXPECT_EQ(FingerprintOf({}), "cbf29ce484222325");
  EXPECT_EQ(FingerprintOf({{"alertname", "Test"}, {"severity", "critical"}}), "efcaa50ee41c2d76");
  EXPECT_NE(FingerprintOf({{"a", "b"}}), FingerprintOf({{"a", "c"}}));
  EXPECT_NE(FingerprintOf({{"a", "bc"}}), FingerprintOf({{"ab", "c"}})) << "names and values are kept apart";
}

TEST(AlertSummary, SaysWhatIsWrong) {
  EXPECT_EQ(SummaryOf(Backlog("orders", 100'001)),
            "100001 due jobs of topic orders wait, more than 100: too few consumers, or a paused topic");
  EXPECT_EQ(SummaryOf({&RuleOf(AlertRuleId::kLate), "orders", {}, 6'500, 5'000, {}}),
            "the first due job of topic orders has waited for 6.5 s, longer than 5.0 s");
  EXPECT_EQ(SummaryOf({&RuleOf(AlertRuleId::kNodeSilent), {}, "n3", 7'200'000, 60'000, {}}),
            "node n3 has vanished: it was last heard of 2 h ago");
  EXPECT_EQ(SummaryOf({&RuleOf(AlertRuleId::kDiskNearlyFull), {}, {}, 93.25, 90, {}}),
            "93.2 % of the disk of the data folder are used");
  EXPECT_EQ(SummaryOf({&RuleOf(AlertRuleId::kJobFailures), "{value}", {}, 3, 3, "7"}),
            "failed attempts of job 7 of topic {value}: 3")
      << "what an alert has is no mark";
}

TEST(AlertRules, EachSummaryHasOnlyMarksThatAreKnown) {
  for (const AlertRule& rule : kAlertRules) {
    EXPECT_FALSE(SummaryOf({&rule, "t", "n", 1, 1, "d"}).contains('{')) << rule.name;
    EXPECT_TRUE(rule.alertname.starts_with("Tocsin")) << rule.name;
  }
}

}  // namespace
}  // namespace tocsin
