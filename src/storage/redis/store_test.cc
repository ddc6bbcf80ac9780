// Several nodes on one real Redis: what the contract of a single Store cannot show.
#include "storage/redis/store.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/redis/nodes_test_fixture.h"

namespace tocsin::redis {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(RedisNodes, AJobOfOneNodeIsClaimedAndSettledThroughAnother) {
  const auto a = Node("a");
  const auto b = Node("b");
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  EXPECT_EQ(Submit(*a, Job("x")), SubmitOutcome::kAccepted);
  EXPECT_EQ(Submit(*b, Job("x")), SubmitOutcome::kDuplicate);
  const auto claimed = Claim(*b);
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_THAT(Claim(*a), IsEmpty());
  EXPECT_EQ(Ack(*a, claimed[0].token), SettleOutcome::kOk);
  EXPECT_EQ(Ack(*b, claimed[0].token), SettleOutcome::kStale);
}

// The script does not know how large the first job is before it has read it: the store asks again.
// WAIT (redis.wait_replicas) waits for what a connection wrote last: the first call may have gone through another one.
TEST_F(RedisNodes, ADuplicateIsWrittenSoThatReplicasCanBeAwaited) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_EQ(Submit(*a, Job("x", std::chrono::hours(1))), SubmitOutcome::kAccepted);
  const auto changes = [] {
    return std::stoll(real::InfoField(Server().Ask({"INFO", "persistence"})->text, "rdb_changes_since_last_save"));
  };
  const int64_t before = changes();
  ASSERT_EQ(Submit(*a, Job("x", std::chrono::hours(1))), SubmitOutcome::kDuplicate);
  EXPECT_GT(changes(), before);
}

TEST_F(RedisNodes, AClaimOfLargeJobsStaysWithinItsRoom) {
  struct Room final : JobRoom {
    bool Reach(size_t /*jobs*/, size_t bytes) override {
      most = std::max(most, bytes <= bytes_max ? bytes : 0);
      return bytes <= bytes_max;
    }
    void Lower(size_t /*jobs*/, size_t /*bytes*/) override {}
    size_t bytes_max = 0;
    size_t most = 0;
  };
  const auto node = Node("a");
  ASSERT_TRUE(Put(*node, topic_));
  const std::string payload(100'000, 'x');
  for (const std::string_view id : {"1", "2", "3", "4"}) {
    NewJob job = Job(id);
    job.payload = payload;
    job.key = "k";
    ASSERT_EQ(Submit(*node, job), SubmitOutcome::kAccepted);
  }
  const auto claim = [&](Room& room) {
    auto batch = Await<JobBatch>(*node, [&](auto done) {
      node->store().Claim("orders", {100, &room}, std::chrono::seconds(30), clock_.Now(), std::move(done));
    });
    EXPECT_TRUE(batch) << batch.error().message;
    return batch ? *std::move(batch) : JobBatch{};
  };
  for (int i = 0; i < 3; ++i) {
    Room little;
    little.bytes_max = 50'000;
    const JobBatch none = claim(little);
    EXPECT_THAT(none.jobs, IsEmpty());
    EXPECT_TRUE(none.no_room);
  }
  std::vector<std::string> ids;
  while (ids.size() < 4) {
    Room room;
    room.bytes_max = 250'000;
    const JobBatch batch = claim(room);
    ASSERT_FALSE(batch.jobs.empty());
    EXPECT_LE(batch.jobs.size(), 2U);
    EXPECT_GE(room.most, batch.jobs.size() * payload.size());
    for (const JobView& job : batch.jobs) {
      ids.push_back(job.Id());
      EXPECT_EQ(job.attempt, 1U);
    }
  }
  EXPECT_THAT(ids, ElementsAre("1", "2", "3", "4"));
  EXPECT_EQ(node->store().Topics()[0].delivered, 4U);
}

TEST_F(RedisNodes, Invariant06_AcksInPartsOutOfOrderAndTwiceAreAnsweredOneByOne) {
  const auto node = Node("a");
  ASSERT_TRUE(Put(*node, topic_));
  for (const std::string_view id : {"1", "2", "3", "4", "5", "6"}) Submit(*node, Job(id));
  const auto first = Claim(*node, 4);
  const auto second = Claim(*node, 4);
  ASSERT_EQ(first.size(), 4U);
  ASSERT_EQ(second.size(), 2U);
  const Token other{.slot = 0, .handle = first[0].token.handle, .fence = second[0].token.fence};
  EXPECT_THAT(Settle(*node, {first[2].token, first[0].token, first[2].token, second[1].token, other, second[0].token}),
              ElementsAre(SettleOutcome::kOk, SettleOutcome::kOk, SettleOutcome::kStale, SettleOutcome::kOk,
                          SettleOutcome::kStale, SettleOutcome::kOk));
  EXPECT_THAT(Settle(*node, {first[1].token, first[3].token}), ElementsAre(SettleOutcome::kOk, SettleOutcome::kOk));
  EXPECT_THAT(Settle(*node, {first[1].token}), ElementsAre(SettleOutcome::kStale));
  const TopicFigures figures = node->store().Topics()[0];
  EXPECT_EQ(std::tuple(figures.acked, figures.leased, figures.bytes), std::tuple(6U, 0U, 0U));
}

// They fall due in another order than they came: a claim is given and acked in the order of the due times.
TEST_F(RedisNodes, AClaimAckedAsAWholeOrInPartsLeavesNothingBehind) {
  const auto node = Node("a");
  ASSERT_TRUE(Put(*node, topic_));
  Submit(*node, Job("", 1h));
  const uint64_t bytes = node->store().Topics()[0].bytes;
  ASSERT_GT(bytes, 0U);
  for (const ptrdiff_t alone : {0, 5}) {
    for (int i = 0; i < 20; ++i) Submit(*node, Job("", Millis(20 - i)));
    clock_.Advance(20ms);
    Advance(*node);
    const auto claimed = Claim(*node);
    ASSERT_EQ(claimed.size(), 20U);
    std::vector<Token> rest;
    for (const JobView& job : claimed) rest.push_back(job.token);
    if (alone > 0) Settle(*node, {rest.begin(), rest.begin() + alone});
    ASSERT_TRUE(Server().Ask({"CONFIG", "RESETSTAT"}));
    EXPECT_THAT(Settle(*node, {rest.begin() + alone, rest.end()}), Each(SettleOutcome::kOk));
    const auto commands = Server().Ask({"INFO", "commandstats"});
    ASSERT_TRUE(commands);
    EXPECT_EQ(commands->text.contains("cmdstat_zmscore"), alone > 0) << "a whole one is not looked at job by job";
    EXPECT_THAT(Settle(*node, rest), Each(SettleOutcome::kStale));
    const TopicFigures figures = node->store().Topics()[0];
    EXPECT_EQ(std::tuple(figures.leased, figures.scheduled, figures.bytes), std::tuple(0U, 1U, bytes)) << alone;
  }
  // What the second claim has left behind goes when its lease would have ended.
  node->OwnAll();
  clock_.Advance(30s);
  Advance(*node);
  for (const Part part : {Part::kPrepare, Part::kNote, Part::kClaim}) {
    const auto held = Server().Ask({"EXISTS", KeysOfOrders(0).Of(part)});
    ASSERT_TRUE(held);
    EXPECT_EQ(held->integer, 0) << KeysOfOrders(0).Of(part);
  }
}

// The record of a job with a delay tells its due time together with its number, as long as that one tells the time.
TEST_F(RedisNodes, ADelayIsKeptThroughALeaseAndWhereTheClockWentBack) {
  const auto node = Node("a");
  ASSERT_TRUE(Put(*node, topic_));
  for (const bool went_back : {false, true}) {
    if (went_back) {
      const std::string meta = KeysOfOrders(0).Of(Part::kMeta);
      ASSERT_TRUE(Server().Ask({"HINCRBY", meta, "seq", fmt::format("{}", 60'000 * 4096)}));
    }
    const Time due = clock_.Now().utc + 5s;
    Submit(*node, Job("", 5s));
    clock_.Advance(5s);
    Advance(*node);
    for (const SettleKind kind : {SettleKind::kRelease, SettleKind::kAck}) {
      const auto claimed = Claim(*node);
      ASSERT_EQ(claimed.size(), 1U);
      EXPECT_EQ(claimed[0].due, due) << went_back;
      EXPECT_THAT(Settle(*node, {claimed[0].token}, kind), ElementsAre(SettleOutcome::kOk));
    }
  }
}

// A first lease is kept in another place than later ones: neither's token is good for the other.
TEST_F(RedisNodes, Invariant06_AFirstLeaseExtendedOrLostKeepsOrLosesItsToken) {
  const auto node = Node("a");
  ASSERT_TRUE(Put(*node, topic_));
  Submit(*node, Job("extended"));
  Submit(*node, Job("lost"));
  const auto first = Claim(*node);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_THAT(Settle(*node, {first[0].token}, SettleKind::kExtend), ElementsAre(SettleOutcome::kOk));
  EXPECT_THAT(Settle(*node, {first[1].token}, SettleKind::kRelease), ElementsAre(SettleOutcome::kOk));
  const auto again = Claim(*node);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].attempt, 1U) << "a release costs no attempt";
  const Token forged{.slot = 0, .handle = first[1].token.handle, .fence = again[0].token.fence ^ 1};
  EXPECT_THAT(Settle(*node, {first[1].token, forged}), ElementsAre(SettleOutcome::kStale, SettleOutcome::kStale));
  EXPECT_THAT(Settle(*node, {first[0].token, again[0].token}), ElementsAre(SettleOutcome::kOk, SettleOutcome::kOk));
  const TopicFigures figures = node->store().Topics()[0];
  EXPECT_EQ(std::tuple(figures.acked, figures.leased, figures.bytes), std::tuple(2U, 0U, 0U));
}

TEST_F(RedisNodes, AnOwnerThatSleepsLongerIsWokenByAnEarlierJob) {
  const auto a = Node("a");
  const auto b = Node("b");
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  b->OwnAll();
  Quiet();
  EXPECT_EQ(Submit(*a, Job("far", 1h)), SubmitOutcome::kAccepted);
  EXPECT_LE(Advance(*b).next_utc, clock_.Now().utc + 1h);
  bool news = false;
  b->store().OnChanged([&] { news = true; });
  EXPECT_EQ(Submit(*a, Job("near", 5s)), SubmitOutcome::kAccepted);
  while (!news) ASSERT_GT(io_.run_one_for(10s), 0U) << "no news";
  EXPECT_LE(Advance(*b).next_utc, clock_.Now().utc + 5s);
}

TEST_F(RedisNodes, PeerBug02_AfterALostConnectionTheScanComesFirst) {
  const auto a = Node("a");
  const auto b = Node("b");
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  Advance(*b);
  int news = 0;
  b->store().OnChanged([&] { ++news; });
  ASSERT_TRUE(Server().Ask({"CLIENT", "KILL", "TYPE", "pubsub"}));
  ASSERT_TRUE(Server().Ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}));
  while (news == 0) ASSERT_GT(io_.run_one_for(10s), 0U) << "it does not look after its connection is back";
  EXPECT_EQ(Submit(*a, Job("x")), SubmitOutcome::kAccepted);
  EXPECT_THAT(Advance(*b).ready, ElementsAre("orders"));
}

TEST_F(RedisNodes, Invariant08_AStaleOwnerIsRefused) {
  const auto a = Node("a");
  const auto b = Node("b");
  topic_.backoff_base = topic_.backoff_max = 0ms;
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  a->OwnAll();
  const auto epoch = a->store().Groups()[0].epoch;
  EXPECT_EQ(Submit(*a, Job("x")), SubmitOutcome::kAccepted);
  ASSERT_EQ(Claim(*a, 1, 10s).size(), 1U);
  b->OwnAll();  // a does not know
  bool refused = false;
  a->store().OnGroupLost([&] { refused = true; });
  clock_.Advance(10s);
  Advance(*a);
  EXPECT_TRUE(refused);
  EXPECT_THAT(Claim(*a), IsEmpty()) << "its roll-back was not carried out";
  Advance(*b);
  EXPECT_EQ(Claim(*b).size(), 1U) << "the new owner's was";
  Advance(*b);
  EXPECT_GT(b->store().Groups()[0].epoch, epoch);
}

TEST_F(RedisNodes, AnOwnerLearnsWithoutChoresThatAnotherTookItsGroups) {
  const auto a = Node("a");
  const auto b = Node("b");
  ASSERT_TRUE(Put(*a, topic_));
  a->OwnAll();
  bool refused = false;
  a->store().OnGroupLost([&] { refused = true; });
  clock_.Advance(1s);
  Advance(*a);
  EXPECT_FALSE(refused);
  b->OwnAll();  // a does not know
  clock_.Advance(1s);
  Advance(*a);
  EXPECT_TRUE(refused) << "the scan of a group with slots is refused";
  // Groups without slots are rarely scanned: it hears of those in the beats of the new owner.
  const auto owns_any = [&] { return std::ranges::any_of(a->store().Groups(), &GroupState::mine); };
  ASSERT_TRUE(real::WaitFor(Millis(20'000), [&] {
    clock_.Advance(1s);
    Advance(*b);
    io_.run_one_for(10ms);
    return !owns_any();
  }));
  a->OwnAll();  // as its coordinator says now
  clock_.Advance(1s);
  Advance(*a);
  EXPECT_TRUE(a->store().Groups()[0].mine) << "it has taken them again";
}

TEST_F(RedisNodes, AnOwnerLearnsWithoutChoresThatAnotherHasItsGroupWithTheSameEpoch) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  a->OwnAll();
  Advance(*a);
  // What a failover that lost a's take, and another node's take after it, would leave.
  ASSERT_TRUE(Server().Ask({"HSET", KeysOfOrders(0).Of(Part::kOwner), "node", "b"}));
  bool refused = false;
  a->store().OnGroupLost([&] { refused = true; });
  clock_.Advance(1s);
  Advance(*a);
  EXPECT_TRUE(refused);
  EXPECT_FALSE(a->store().Groups()[GroupOf("orders", 0, kGroups)].mine);
}

TEST_F(RedisNodes, AStoreThatIsOpenedAgainListensOnce) {
  const auto a = Node("a");
  ASSERT_TRUE(Await<void>(*a, [&](Done<void> done) { a->store().Open(std::move(done)); }));
  EXPECT_EQ(a->client().ups(), 1U);
}

TEST_F(RedisNodes, Invariant08_TheSameEpochInAnotherNodesHandsIsRefused) {
  const auto a = Node("a");
  ASSERT_TRUE(Put(*a, topic_));
  a->OwnAll();
  EXPECT_EQ(Submit(*a, Job("x")), SubmitOutcome::kAccepted);
  ASSERT_EQ(Claim(*a, 1, 10s).size(), 1U);
  // What a failover that lost a's take, and another node's take after it, would leave.
  const SlotKeys keys = KeysOfOrders(0);
  ASSERT_TRUE(Server().Ask({"HSET", keys.Of(Part::kOwner), "node", "b"}));
  bool refused = false;
  a->store().OnGroupLost([&] { refused = true; });
  clock_.Advance(10s);
  Advance(*a);
  EXPECT_TRUE(refused);
  EXPECT_EQ(a->store().Topics()[0].expired, 0U);
}

TEST_F(RedisNodes, ANodeThatOwnsNothingStillDeliversWhatIsDue) {
  const auto a = Node("a");
  const auto dead = Node("dead");
  ASSERT_TRUE(Put(*a, topic_));
  dead->OwnAll();
  EXPECT_EQ(Submit(*a, Job("x", 5s)), SubmitOutcome::kAccepted);
  Advance(*a);
  clock_.Advance(5s);
  EXPECT_THAT(Advance(*a).ready, ElementsAre("orders"));
  EXPECT_EQ(Claim(*a).size(), 1U);
}

TEST_F(RedisNodes, ASlotOfAPushedTopicIsClaimedByItsOwnerAlone) {
  topic_.slots = 8;
  std::vector<uint32_t> some;
  for (const uint32_t slot : {0U, 1U, 2U}) some.push_back(GroupOf("orders", slot, kGroups));
  std::vector<uint32_t> rest;
  for (uint32_t group = 0; group < kGroups; ++group) {
    if (std::ranges::find(some, group) == some.end()) rest.push_back(group);
  }
  const auto a = Node("a");
  const auto b = Node("b");
  const auto own = [](TestNode& node, const std::vector<uint32_t>& groups) {
    node.store().OwnGroups(groups);
    node.Pump();
  };
  own(*a, some);
  own(*b, rest);
  const auto submit_to_all = [&] {
    for (uint32_t slot = 0; slot < topic_.slots; ++slot) Submit(*a, Job("", 0ms, slot));
  };
  const auto put = [&](const Delivery& delivery) {
    topic_.delivery = delivery;
    ++topic_.version;
    return Put(*a, topic_).has_value();
  };
  ASSERT_TRUE(put({}));
  submit_to_all();
  Advance(*a);  // all of them are ready, for consumers
  ASSERT_TRUE(put({.sink = "webhook", .settings = {{"url", "http://receiver.example/"}}}));
  ASSERT_TRUE(Put(*b, topic_));
  const auto groups_of = [](const std::vector<JobView>& jobs) {
    std::vector<uint32_t> groups;
    for (const JobView& job : jobs) groups.push_back(GroupOf("orders", job.token.slot, kGroups));
    return groups;
  };
  const auto first = groups_of(Claim(*a));
  EXPECT_THAT(first, Each(testing::AnyOfArray(some)));
  const auto second = groups_of(Claim(*b));
  EXPECT_THAT(second, Each(testing::AnyOfArray(rest)));
  EXPECT_EQ(std::pair(first.size() + second.size(), first.empty()), std::pair(size_t{topic_.slots}, false));

  own(*a, {});
  b->OwnAll();
  submit_to_all();
  EXPECT_THAT(Advance(*a).ready, IsEmpty());
  const size_t calls = a->client().calls();
  EXPECT_THAT(Claim(*a), IsEmpty());
  EXPECT_EQ(a->client().calls(), calls) << "there is nothing to ask Redis";
  EXPECT_THAT(Advance(*b).ready, ElementsAre("orders"));
  EXPECT_EQ(Claim(*b).size(), topic_.slots);

  submit_to_all();
  ASSERT_TRUE(put({}));
  EXPECT_EQ(Claim(*a).size(), topic_.slots) << "consumers get them through any node";
}

TEST_F(RedisNodes, TopicsOfOtherNodesAreSeen) {
  const auto a = Node("a");
  const auto b = Node("b");
  Advance(*b);
  ASSERT_TRUE(Put(*a, topic_));
  clock_.Advance(1s);
  EXPECT_THAT(ChangesSeenBy(*b).changed, ElementsAre(topic_));
  ASSERT_TRUE(Put(*b, topic_));
  Topic here = topic_;
  here.version = 1;
  here.retention = 1h;
  Topic there = here;
  there.retention = 2h;
  ASSERT_TRUE(Put(*a, here));
  const auto late = Put(*b, there);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kConflict);
  EXPECT_EQ(b->store().Topics()[0].topic, here) << "what it lost to";
  there.version = 2;
  ASSERT_TRUE(Put(*b, there));
  clock_.Advance(1s);
  EXPECT_THAT(ChangesSeenBy(*a).changed, ElementsAre(there));
  ASSERT_TRUE(Await<void>(*a, [&](Done<void> done) { a->store().DropTopic("orders", std::move(done)); }));
  clock_.Advance(1s);
  EXPECT_THAT(ChangesSeenBy(*b).dropped, ElementsAre("orders"));
  EXPECT_THAT(b->store().Topics(), IsEmpty());
}

TEST_F(RedisNodes, Invariant10_ACapacityOverManySlotsAndNodesIsNeverExceeded) {
  const auto a = Node("a");
  const auto b = Node("b");
  topic_.slots = 8;
  topic_.capacity_jobs = 37;
  ASSERT_TRUE(Put(*a, topic_));
  ASSERT_TRUE(Put(*b, topic_));
  std::vector<std::string> ids;
  for (int i = 0; i < 200; ++i) ids.push_back(fmt::format("j{}", i));
  size_t accepted = 0;
  size_t answered = 0;
  for (int i = 0; i < 200; ++i) {
    TestNode& node = i % 2 == 0 ? *a : *b;
    const NewJob job = Job(ids[static_cast<size_t>(i)], 0ms, static_cast<uint32_t>(i * 5 % 8));
    node.store().Submit("orders", {&job, 1}, clock_.Now(), [&](Result<std::vector<Submitted>> outcomes) {
      ASSERT_TRUE(outcomes);
      accepted += (*outcomes)[0].outcome == SubmitOutcome::kAccepted;
      ++answered;
    });
  }
  while (answered < 200) ASSERT_GT(io_.run_one(), 0U);
  // Those that ask at the same moment may be refused while room is on its way from one slot to another.
  EXPECT_LE(accepted, 37U);
  EXPECT_GE(accepted, 20U);
  for (uint32_t i = 0; i < 5000 && accepted < 37; ++i) {
    accepted += Submit(*a, Job(fmt::format("late{}", i), 0ms, i % 8)) == SubmitOutcome::kAccepted;
  }
  EXPECT_EQ(accepted, 37U) << "when it is quiet, all of it can be used";
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(Submit(*b, Job(fmt::format("over{}", i), 0ms, i % 8)), SubmitOutcome::kOverCapacity);
  }
  // What is acked on one slot makes room on every other.
  Advance(*a);  // it knows of the slots that b has filled
  size_t acked = 0;
  for (const JobView& job : Claim(*a, 10)) acked += Ack(*b, job.token) == SettleOutcome::kOk;
  EXPECT_EQ(acked, 10U);
  size_t again = 0;
  for (uint32_t i = 0; i < 10; ++i) {
    again += Submit(*b, Job(fmt::format("n{}", i), 1h, i % 8)) == SubmitOutcome::kAccepted;
  }
  EXPECT_EQ(again, 10U);
}

TEST_F(RedisNodes, ALoweredCapacityRefusesWhatIsNewOnEverySlot) {
  const auto a = Node("a");
  topic_.slots = 4;
  topic_.capacity_jobs = 100;
  ASSERT_TRUE(Put(*a, topic_));
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(Submit(*a, Job({}, 1h, i % 4)), SubmitOutcome::kAccepted);
  topic_.capacity_jobs = 20;
  topic_.version = 1;
  ASSERT_TRUE(Put(*a, topic_));
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(Submit(*a, Job({}, 1h, i % 4)), SubmitOutcome::kOverCapacity);
}

TEST_F(RedisNodes, AThousandIdleSlotsCostFewCommands) {
  const auto a = Node("a");
  for (int i = 0; i < 100; ++i) {
    Topic topic = DefaultTopic(fmt::format("t{}", i));
    topic.slots = i % 10 == 0 ? 16 : 8;
    ASSERT_TRUE(Put(*a, topic));
  }
  a->OwnAll();
  Advance(*a);
  const size_t before = a->client().calls();
  for (int second = 0; second < 10; ++second) {
    clock_.Advance(1s);
    Advance(*a);
  }
  EXPECT_LE(a->client().calls() - before, 10 * 100U);
}

TEST_F(RedisNodes, WithRedisOwnClockNothingIsEarly) {
  const auto a = Node("a", ClockSource::kRedis);
  ASSERT_TRUE(Put(*a, topic_));
  const NewJob job = Job("x", 300ms);
  const auto began = std::chrono::steady_clock::now();
  const auto submitted = Await<std::vector<Submitted>>(
      *a, [&](auto done) { a->store().Submit("orders", {&job, 1}, real_clock_.Now(), std::move(done)); });
  ASSERT_TRUE(submitted);
  size_t claimed = 0;
  while (claimed == 0) {
    ASSERT_TRUE(Await<Advanced>(*a, [&](auto done) { a->store().Advance(real_clock_.Now(), 100, std::move(done)); }));
    const auto batch = Await<JobBatch>(
        *a, [&](auto done) { a->store().Claim("orders", {1}, 1s, real_clock_.Now(), std::move(done)); });
    ASSERT_TRUE(batch);
    claimed = batch->jobs.size();
    ASSERT_LT(std::chrono::steady_clock::now() - began, 20s);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - began, 299ms);
}

TEST_F(RedisNodes, TheChecksSayWhatIsWrongWithAServer) {
  EXPECT_THAT(Findings("s", Mode::kSingle, "redis_version:7.0.15\r\n",
                       {{"appendonly", "yes"}, {"appendfsync", "everysec"}, {"maxmemory-policy", "noeviction"}}),
              IsEmpty());
  EXPECT_THAT(
      Findings("s", Mode::kSingle, "redis_version:6.2.14\r\n",
               {{"appendonly", "no"}, {"maxmemory-policy", "allkeys-lru"}}),
      ElementsAre(HasSubstr("is version 6.2.14: 7.0 or newer"), HasSubstr("appendonly no"), HasSubstr("allkeys-lru")));
  EXPECT_THAT(Findings("s", Mode::kSingle, "redis_version:10.0.1\r\n", {}), ElementsAre(HasSubstr("CONFIG GET")));
  const std::vector<std::pair<std::string, std::string>> clustered = {
      {"appendonly", "yes"}, {"maxmemory-policy", "noeviction"}, {"cluster-enabled", "yes"}};
  EXPECT_THAT(Findings("s", Mode::kSingle, "redis_version:7.0.15\r\n", clustered),
              ElementsAre(HasSubstr("redis.mode = cluster")));
  EXPECT_THAT(Findings("s", Mode::kCluster, "redis_version:7.0.15\r\n", clustered), IsEmpty());
  const auto a = Node("a");
  const auto found = Await<std::vector<std::string>>(
      *a, [&](auto done) { CheckServers(a->client(), Mode::kSingle, std::move(done)); });
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, IsEmpty());
}

}  // namespace
}  // namespace tocsin::redis
