// Lists by selector and tallies, over one shard and over several.
#include <deque>
#include <set>

#include <gmock/gmock.h>

#include "core/operations_test_site.h"

namespace tocsin {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

class ListsTest : public OperationsTest {};

TEST_P(ListsTest, AListHasWhatTheSelectorNames) {
  SubmitJobs(10);
  EXPECT_THAT(Ids({.topic = "t", .what = {.key = "k1"}, .limit = 2}), UnorderedElementsAre("1", "3", "5", "7", "9"));
  EXPECT_THAT(Ids({.topic = "t", .what = {.header = "n", .header_value = "4"}}), ElementsAre("4"));
  EXPECT_THAT(Ids({.topic = "t", .what = {.ids = {"3", "absent", "5", "7"}, .key = "k1"}, .limit = 2}),
              ElementsAre("3", "5", "7"));
}

TEST_P(ListsTest, AJobThatIsNamedTwiceIsListedOnce) {
  SubmitJobs(6);
  ASSERT_TRUE(node.Submit("t", {{.delay = Millis(1000), .payload = "x"}}));
  const std::string without = Ids({.topic = "t", .what = {.payload = "x"}})[0];
  const auto page = List({.topic = "t", .what = {.ids = {"3"}, .key = "k1"}});
  const std::string uid = UidText(page->jobs.jobs[0].uid);
  for (const size_t limit : {1, 100}) {
    EXPECT_THAT(Ids({.topic = "t", .what = {.ids = {"3", "5", "3", uid, "5"}, .key = "k1"}, .limit = limit}),
                ElementsAre("3", "5"));
    EXPECT_THAT(Ids({.topic = "t", .what = {.ids = {uid, "3"}, .key = "k1"}, .limit = limit}), ElementsAre("3"));
    EXPECT_THAT(Ids({.topic = "t", .what = {.ids = {without, without}}, .limit = limit}), ElementsAre(without));
  }
}

TEST_P(ListsTest, ASortedListIsInOrderOverAllPages) {
  SubmitJobs(23);
  std::vector<std::string> by_created, by_due;
  for (int i = 0; i < 23; ++i) by_created.push_back(std::to_string(i));
  by_due.assign(by_created.rbegin(), by_created.rend());
  EXPECT_EQ(Ids({.topic = "t", .limit = 5, .sort = Sort::kDue}), by_due);
  EXPECT_EQ(Ids({.topic = "t", .what = {.key = "k0"}, .limit = 3, .sort = Sort::kDue}).size(), 12U);
  EXPECT_EQ(List({.topic = "t", .cursor = "nonsense", .sort = Sort::kDue}).error().field, "cursor");
}

TEST_P(ListsTest, AListByCreationIsInOrderAndKeepsItsPlaceWhileJobsChange) {
  std::vector<std::string> all;
  const auto submit = [&] {
    node.clock.Advance(Millis(1));
    const std::string& id = all.emplace_back(std::to_string(all.size()));
    const std::string key = "k" + id;
    const NewJob job{.id = id, .key = key, .delay = std::chrono::hours(100 - all.size())};
    ASSERT_TRUE(node.Submit("t", {job}));
  };
  while (all.size() < 23) submit();
  EXPECT_EQ(Ids({.topic = "t", .limit = 5, .sort = Sort::kCreated}), all);
  const auto page = List({.topic = "t", .limit = 5, .sort = Sort::kCreated});
  ASSERT_TRUE(page);
  for (const std::string id : {"2", "9"}) {
    const std::string key = "k" + id;
    TestNode::Reply<std::vector<Amended>> cancelled;
    node.service->Amend(node.at(0), {"t", {{.job = {.id = id, .key = key}, .kind = AmendKind::kCancel}}, nullptr},
                        cancelled.Catch());
    node.Run();
    EXPECT_EQ((**cancelled.got)[0].outcome, AmendOutcome::kDone);
  }
  submit();
  auto rest = std::vector(all.begin() + 5, all.end());
  std::erase(rest, "9");
  EXPECT_EQ(Ids({.topic = "t", .cursor = page->cursor, .limit = 5, .sort = Sort::kCreated}), rest);
}

TEST_P(ListsTest, ASortedListHasTheJobsThatWaitForEventsLast) {
  SubmitJobs(2);
  std::set<std::string> waiting;
  for (int i = 0; i < 5; ++i) {
    const std::string id = "waits-" + std::to_string(i);
    ASSERT_TRUE(node.Submit("t", {{.id = id, .trigger = Trigger::kCount, .count = 1}}));
    waiting.insert(id);
  }
  for (const size_t limit : {1U, 3U, 100U}) {
    const auto ids = Ids({.topic = "t", .limit = limit, .sort = Sort::kDue});
    ASSERT_EQ(ids.size(), 7U) << limit;
    EXPECT_EQ(ids[0], "1");
    EXPECT_EQ(ids[1], "0");
    EXPECT_EQ(std::set(ids.begin() + 2, ids.end()), waiting);
  }
  const TimeRange later{.from = node.clock.Now().utc, .to = std::nullopt};
  EXPECT_EQ(Ids({.topic = "t", .what = {.due = later}, .limit = 1, .sort = Sort::kDue}).size(), 2U);
}

TEST_P(ListsTest, ASortedPageIsBoundedInBytes) {
  const std::string payload(900'000, 'x');
  for (int i = 0; i < 12; ++i) {
    const std::string id = std::to_string(i);
    ASSERT_TRUE(node.Submit("t", {{.id = id, .delay = Millis(1000 + i), .payload = payload}}));
  }
  const auto page = List({.topic = "t", .limit = 100, .sort = Sort::kDue});
  ASSERT_TRUE(page);
  EXPECT_LT(page->jobs.jobs.size(), 6U);
  std::vector<std::string> all;
  for (int i = 0; i < 12; ++i) all.push_back(std::to_string(i));
  EXPECT_EQ(Ids({.topic = "t", .limit = 100, .sort = Sort::kDue}), all);
}

TEST_P(ListsTest, ATallyCountsGroups) {
  SubmitJobs(9);
  node.Pass(Millis(20'000));
  Bury(3, "timeout");
  Bury(1, "refused");
  TallyReport by_state = Tally({.topic = "t", .by = TallyBy::kState});
  EXPECT_EQ(by_state.total, 9U);
  EXPECT_THAT(by_state.groups, ElementsAre(Pair("scheduled", 5), Pair("dead", 4)));
  EXPECT_THAT(Tally({.topic = "t", .what = OfState(State::kDead), .by = TallyBy::kReason}).groups,
              ElementsAre(Pair("timeout", 3), Pair("refused", 1)));
  EXPECT_THAT(Tally({.topic = "t", .by = TallyBy::kKey}).groups, ElementsAre(Pair("k0", 5), Pair("k1", 4)));
  EXPECT_EQ(Tally({.topic = "t", .by = TallyBy::kHeader, .header = "n"}).groups.size(), 9U);
  const auto minutes = Tally({.topic = "t", .by = TallyBy::kMinute});
  uint64_t jobs = 0;
  for (const auto& [minute, count] : minutes.groups) jobs += count;
  EXPECT_EQ(jobs, 9U);
}

TEST_P(ListsTest, LongValuesOfATallyAreCutAndBoundedTogether) {
  const std::string prefix(1000, 'x');
  for (int i = 0; i < 6000; ++i) {
    const std::string own = std::to_string(10'000 + i);
    const std::string value = own + prefix;
    ASSERT_TRUE(node.Submit("t", {{.delay = Millis(1000), .headers = {{"n", value}, {"same", prefix + own}}}}));
  }
  const TallyReport report = Tally({.topic = "t", .by = TallyBy::kHeader, .header = "n"});
  EXPECT_EQ(report.total, 6000U);
  EXPECT_EQ(report.groups.size(), 1000U);
  uint64_t jobs = report.others;
  for (const auto& [value, count] : report.groups) {
    EXPECT_EQ(value.size(), kTallyValueMax);
    jobs += count;
  }
  EXPECT_EQ(jobs, 6000U);
  EXPECT_THAT(Tally({.topic = "t", .by = TallyBy::kHeader, .header = "same"}).groups,
              ElementsAre(Pair(prefix.substr(0, kTallyValueMax), 6000)));
}

TEST_P(ListsTest, ATallyAsksForRoomForItsGroups) {
  SubmitJobs(1000);
  struct Room final : JobRoom {
    bool Reach(size_t /*jobs*/, size_t bytes) override {
      reached = std::max(reached, bytes);
      return bytes <= max;
    }
    void Lower(size_t /*jobs*/, size_t /*bytes*/) override {}
    size_t max = SIZE_MAX;
    size_t reached = 0;
  };
  Room room;
  (void)Tally({.topic = "t", .by = TallyBy::kHeader, .header = "n", .room = &room});
  EXPECT_GT(room.reached, 100'000U);
  room.max = room.reached / 2;
  TestNode::Reply<TallyReport> reply;
  node.service->Tally(node.at(1), {.topic = "t", .by = TallyBy::kHeader, .header = "n", .room = &room}, reply.Catch());
  node.Run();
  EXPECT_EQ(reply.got->error().code, Code::kOverloaded);
}

TEST_P(ListsTest, AWalkEndsWhenNobodyWaitsForIt) {
  SubmitJobs(100);
  for (auto& store : node.stores) store->list_max = 1;
  int left = 3;
  const auto wanted = [&left] { return left-- > 0; };
  TestNode::Reply<TallyReport> tally;
  node.service->Tally(node.at(0), {.topic = "t", .wanted = wanted}, tally.Catch());
  node.Run();
  EXPECT_FALSE(*tally.got);
  left = 3;
  EXPECT_FALSE(List({.topic = "t", .sort = Sort::kDue, .wanted = wanted}));
  left = 3;
  EXPECT_FALSE(List({.topic = "t", .wanted = wanted}));
  left = 1;
  EXPECT_FALSE(List({.topic = "t", .what = {.ids = {"1", "2", "3"}}, .wanted = wanted}));
  EXPECT_LT(node.stores[0]->lists, 20U);
}

TEST_P(ListsTest, ALargeSubmitWaitsForOneStepOfAllWalksEachTime) {
  SubmitJobs(100);
  for (auto& store : node.stores) store->list_max = 1;
  std::deque<TestNode::Reply<TallyReport>> tallies(500);
  for (auto& each : tallies) node.service->Tally(node.at(0), {.topic = "t"}, each.Catch());
  for (int i = 0; i < 2000; ++i) {
    for (auto& loop : node.loops) loop->RunOne();
  }
  const std::string payload(1 << 20, 'x');
  TestNode::Reply<std::vector<Submitted>> reply;
  const NewJob job{.delay = Millis(1000), .payload = payload};
  SubmitRequest request{.topic = "t", .jobs = {10, job}, .bytes = nullptr};
  node.service->Submit(node.at(0), std::move(request), reply.Catch());
  size_t turns = 0;
  for (; !reply.got && turns < 1000; ++turns) {
    for (auto& loop : node.loops) loop->RunOne();
  }
  EXPECT_LT(turns, 100U);
  node.Run();
  for (auto& each : tallies) EXPECT_TRUE(each.got->has_value());
}

INSTANTIATE_TEST_SUITE_P(Shards, ListsTest, testing::Values(1, 3));

}  // namespace
}  // namespace tocsin
