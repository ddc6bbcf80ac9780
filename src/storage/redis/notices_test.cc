// The owner of a group looks for due jobs, and tells one node whose consumers wait. Several nodes on one real Redis;
// the test is the shard of each of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/redis/nodes_test_fixture.h"

namespace tocsin::redis {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// EVALSHA and EVAL, as Redis has counted them.
int64_t Scripts() {
  const auto stats = Server().Ask({"INFO", "commandstats"});
  TOCSIN_CHECK(stats);
  int64_t calls = 0;
  for (const std::string_view name : {"cmdstat_evalsha:calls=", "cmdstat_eval:calls="}) {
    const size_t at = stats->text.find(name);
    if (at != std::string::npos) calls += std::strtoll(stats->text.c_str() + at + name.size(), nullptr, 10);
  }
  return calls;
}

bool IsPublish(const Command& command) {
  std::string text;
  command.Encode(text, false);
  return text.contains("PUBLISH");
}

class RedisNotices : public RedisNodes {
 protected:
  struct Seat {
    std::unique_ptr<TestNode> node;
    bool changed = false;
    TestNode& operator*() const { return *node; }
    TestNode* operator->() const { return node.get(); }
  };

  void SetUp() override {
    RedisNodes::SetUp();
    clock_.DriveIo(true);
  }
  std::unique_ptr<Seat> MakeSeat(const std::string& name) {
    auto seat = std::make_unique<Seat>(Node(name));
    EXPECT_TRUE(Put(**seat, topic_));
    seat->node->store().OnChanged([&changed = seat->changed] { changed = true; });
    return seat;
  }
  /// All groups are the seat's, and every node has heard of it.
  void Own(Seat& seat) {
    seat->OwnAll();
    Quiet();
    Advance(*seat);
    Quiet();
  }
  void SetHungry(Seat& seat, bool hungry = true) {
    seat->store().SetHungry("orders", hungry);
    seat->Pump();
    Quiet();
  }
  /// Runs until the store of the seat asks for an Advance.
  void AwaitChange(Seat& seat) {
    const auto end = real_clock_.IoNow() + 10s;
    while (!seat.changed) {
      ASSERT_LT(real_clock_.IoNow(), end) << "it was not told";
      io_.run_one_for(100ms);
    }
    seat.changed = false;
  }
};

TEST_F(RedisNotices, OneNodeIsToldOfAJobThatManyWaitFor) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  const auto c = MakeSeat("c");
  ASSERT_EQ(Submit(**a, Job("")), SubmitOutcome::kAccepted);
  for (const JobView& job : Claim(**a)) Ack(**a, job.token);  // Redis knows all scripts from here on
  Own(*a);
  SetHungry(*b);
  SetHungry(*c);
  for (const auto& seat : {b.get(), c.get()}) Advance(**seat);
  for (const auto& [told, other] : {std::pair(b.get(), c.get()), std::pair(c.get(), b.get())}) {
    clock_.Advance(30ms);
    a->changed = b->changed = c->changed = false;
    const int64_t before = Scripts();
    ASSERT_EQ(Submit(**other, Job("")), SubmitOutcome::kAccepted);
    EXPECT_THAT(Claim(**other), IsEmpty()) << "who waits does not look";
    AwaitChange(*a);
    EXPECT_THAT(Advance(**a).ready, IsEmpty()) << "nobody waits here";
    AwaitChange(*told);
    Quiet();
    EXPECT_FALSE(other->changed);
    EXPECT_THAT(Advance(**told).ready, ElementsAre("orders"));
    const auto claimed = Claim(**told);
    ASSERT_THAT(claimed, SizeIs(1));
    EXPECT_EQ(Ack(**told, claimed[0].token), SettleOutcome::kOk);
    Quiet();
    EXPECT_EQ(Scripts() - before, 4) << "submit, scan, claim, ack";
  }
}

TEST_F(RedisNotices, AnOwnerWhoseConsumersWaitTellsNobody) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  Own(*a);
  SetHungry(*b);
  SetHungry(*a);
  a->changed = b->changed = false;
  ASSERT_EQ(Submit(**b, Job("x")), SubmitOutcome::kAccepted);
  AwaitChange(*a);
  EXPECT_THAT(Advance(**a).ready, ElementsAre("orders"));
  EXPECT_THAT(Claim(**a), SizeIs(1));
  Quiet();
  EXPECT_FALSE(b->changed);
}

TEST_F(RedisNotices, ANodeWhoseConsumersHaveGonePassesTheJobOn) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  const auto c = MakeSeat("c");
  Own(*a);
  SetHungry(*b);
  SetHungry(*b, false);
  SetHungry(*c);
  b->changed = c->changed = a->changed = false;
  ASSERT_EQ(Submit(**a, Job("x")), SubmitOutcome::kAccepted);
  AwaitChange(*a);
  Advance(**a);
  AwaitChange(*c);
  EXPECT_THAT(Advance(**c).ready, ElementsAre("orders"));
  EXPECT_THAT(Claim(**c), SizeIs(1));
  // And it is told again when they are back.
  SetHungry(*c, false);
  SetHungry(*b);
  clock_.Advance(30ms);
  b->changed = a->changed = false;
  ASSERT_EQ(Submit(**a, Job("y")), SubmitOutcome::kAccepted);
  AwaitChange(*a);
  Advance(**a);
  AwaitChange(*b);
  Advance(**b);
  EXPECT_THAT(Claim(**b), SizeIs(1));
}

TEST_F(RedisNotices, WhoComesLaterIsToldOfWhatIsDueAlready) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  Own(*a);
  a->changed = false;
  ASSERT_EQ(Submit(**b, Job("x")), SubmitOutcome::kAccepted);
  AwaitChange(*a);
  Advance(**a);
  b->changed = false;
  SetHungry(*b);
  AwaitChange(*b);
  EXPECT_THAT(Advance(**b).ready, ElementsAre("orders"));
  EXPECT_THAT(Claim(**b), SizeIs(1));
}

TEST_F(RedisNotices, AJobOfATopicThatItsOwnerDoesNotKnowYetIsToldOnceItDoes) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  Own(*a);
  Topic young = topic_;
  young.name = "young";
  (*b)->store().SetHungry("young", true);
  a->changed = false;
  ASSERT_TRUE(Put(**b, young));
  const NewJob job = Job("x");
  ASSERT_TRUE(Await<std::vector<Submitted>>(
      **b, [&](auto done) { (*b)->store().Submit("young", {&job, 1}, clock_.Now(), std::move(done)); }));
  Quiet();
  Advance(**a);
  a->changed = b->changed = false;
  ASSERT_TRUE(Put(**a, young));  // as its core does when it hears of it
  EXPECT_TRUE(a->changed);
  Advance(**a);
  AwaitChange(*b);
  EXPECT_THAT(Advance(**b).ready, ElementsAre("young"));
}

TEST_F(RedisNotices, ATopicThatGoesOnAfterAPauseIsTold) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  Own(*a);
  SetHungry(*b);
  Topic paused = topic_;
  paused.paused = true;
  paused.version = 1;
  ASSERT_TRUE(Put(**a, paused));
  ASSERT_TRUE(Put(**b, paused));
  a->changed = b->changed = false;
  ASSERT_EQ(Submit(**a, Job("x")), SubmitOutcome::kAccepted);
  AwaitChange(*a);
  Advance(**a);
  Quiet();
  EXPECT_THAT(Advance(**b).ready, IsEmpty());
  topic_.version = 2;
  ASSERT_TRUE(Put(**b, topic_));
  b->changed = false;
  ASSERT_TRUE(Put(**a, topic_));
  AwaitChange(*b);
  EXPECT_THAT(Advance(**b).ready, ElementsAre("orders"));
  EXPECT_THAT(Claim(**b), SizeIs(1));
}

TEST_F(RedisNotices, PeerBug02_ALostMessageCostsASecond) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  Own(*a);
  SetHungry(*b);
  a->changed = b->changed = false;
  (*a)->client().hangs = IsPublish;
  ASSERT_EQ(Submit(**b, Job("x")), SubmitOutcome::kAccepted);
  AwaitChange(*a);
  Advance(**a);
  Quiet();
  EXPECT_FALSE(b->changed);
  EXPECT_EQ((*a)->client().held(), 1U);
  (*a)->client().hangs = nullptr;
  clock_.Advance(1s);
  Advance(**a);
  AwaitChange(*b);
  Advance(**b);
  EXPECT_THAT(Claim(**b), SizeIs(1));
}

TEST_F(RedisNotices, ANodeThatDoesNotTakeItIsToldAfterTheOthers) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");  // stands still
  const auto c = MakeSeat("c");
  Own(*a);
  SetHungry(*b);
  SetHungry(*c);
  for (int second = 0; second < 2; ++second) {
    ASSERT_EQ(Submit(**a, Job("")), SubmitOutcome::kAccepted);
    clock_.Advance(1s);
    Advance(**a);
    Quiet();
  }
  Advance(**c);
  EXPECT_THAT(Claim(**c), SizeIs(2));
  Quiet();
  clock_.Advance(30ms);
  a->changed = c->changed = false;
  ASSERT_EQ(Submit(**a, Job("")), SubmitOutcome::kAccepted);
  AwaitChange(*a);
  Advance(**a);
  AwaitChange(*c);
  Advance(**c);
  EXPECT_THAT(Claim(**c), SizeIs(1));
}

// With many groups the owner's next look that nothing calls for is far away.
TEST_F(RedisNotices, WhatADeadNodeWasToldOfGoesToAnotherOneSoon) {
  const auto a = MakeSeat("a");
  auto b = MakeSeat("b");
  const auto c = MakeSeat("c");
  auto d = MakeSeat("d");
  Own(*a);
  for (const auto& seat : {b.get(), d.get(), c.get()}) SetHungry(*seat);
  b.reset();
  d.reset();
  ASSERT_EQ(Submit(**a, Job("x")), SubmitOutcome::kAccepted);
  a->changed = c->changed = false;
  Advance(**a);
  Millis passed(0);
  while (!c->changed && passed < 900ms) {  // that is before the turn of all groups
    Quiet();
    Advance(**a);
    clock_.Advance(20ms);
    passed += 20ms;
  }
  EXPECT_LE(passed, 250ms) << "two dead nodes were told before";
  EXPECT_THAT(Advance(**c).ready, ElementsAre("orders"));
  EXPECT_THAT(Claim(**c), SizeIs(1));
  // They are known to be dead, for every slot and topic.
  Quiet();
  clock_.Advance(30ms);
  for (int i = 0; i < 3; ++i) {
    a->changed = c->changed = false;
    ASSERT_EQ(Submit(**a, Job("")), SubmitOutcome::kAccepted);
    AwaitChange(*a);
    Advance(**a);
    AwaitChange(*c);
    Advance(**c);
    EXPECT_THAT(Claim(**c), SizeIs(1));
    Quiet();
    clock_.Advance(30ms);
  }
}

TEST_F(RedisNotices, AnOwnerLooksLessAndLessOftenForAnOfferThatNobodyTakes) {
  const auto a = MakeSeat("a");
  auto b = MakeSeat("b");
  Own(*a);
  SetHungry(*b);
  b.reset();
  ASSERT_EQ(Submit(**a, Job("x")), SubmitOutcome::kAccepted);
  Quiet();
  const int64_t before = Scripts();
  for (int step = 0; step < 500; ++step) {
    clock_.Advance(10ms);
    Advance(**a);
  }
  EXPECT_LE(Scripts() - before, 6 * 64 + 20) << "the groups take turns each second";
}

// Consumers of one node have enough to do; what is left reaches those of another at once.
TEST_F(RedisNotices, ABusyNodeKeepsNothingFromConsumersElsewhere) {
  for (const bool owner_is_busy : {false, true}) {
    SetUp();
    const auto a = MakeSeat("a");
    const auto b = MakeSeat("b");
    const auto c = MakeSeat("c");
    Own(*a);
    const auto& busy = owner_is_busy ? a : b;
    SetHungry(*busy);
    SetHungry(*c);
    a->changed = b->changed = c->changed = false;
    const std::vector<NewJob> jobs(3);
    ASSERT_TRUE(Await<std::vector<Submitted>>(
        **a, [&](auto done) { (*a)->store().Submit("orders", jobs, clock_.Now(), std::move(done)); }));
    AwaitChange(*a);
    Advance(**a);
    if (!owner_is_busy) AwaitChange(*b);
    Advance(**busy);
    EXPECT_THAT(Claim(**busy, 1), SizeIs(1));
    AwaitChange(*c);
    Advance(**c);
    EXPECT_THAT(Claim(**c), SizeIs(2));
  }
}

TEST_F(RedisNotices, ANodeWithoutRoomKeepsNothingFromConsumersElsewhere) {
  struct NoRoom final : JobRoom {
    bool Reach(size_t /*jobs*/, size_t /*bytes*/) override { return false; }
    void Lower(size_t /*jobs*/, size_t /*bytes*/) override {}
  };
  NoRoom no_room;
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  Own(*a);
  SetHungry(*a);
  SetHungry(*b);
  a->changed = b->changed = false;
  ASSERT_EQ(Submit(**a, Job("x")), SubmitOutcome::kAccepted);
  AwaitChange(*a);
  Advance(**a);
  EXPECT_THAT(Claim(**a, 100, std::chrono::seconds(30), &no_room), IsEmpty());
  AwaitChange(*b);
  Advance(**b);
  EXPECT_THAT(Claim(**b), SizeIs(1));
}

// It has no scan of its own to learn it from before a second has passed.
TEST_F(RedisNotices, TheOwnerLearnsWhatComesAfterAJobThatAnotherNodeClaimed) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  Own(*a);
  a->changed = false;
  ASSERT_EQ(Submit(**b, Job("now")), SubmitOutcome::kAccepted);
  ASSERT_EQ(Submit(**b, Job("later", 300ms)), SubmitOutcome::kAccepted);
  AwaitChange(*a);
  EXPECT_GT(Advance(**a).next_utc, clock_.Now().utc + 300ms) << "the slot has one that is due: it is known no better";
  Quiet();
  a->changed = false;
  ASSERT_THAT(Claim(**b), SizeIs(1));
  AwaitChange(*a);
  EXPECT_EQ(Advance(**a).next_utc, clock_.Now().utc + 300ms);
}

TEST_F(RedisNotices, ANewOwnerIsToldWhoWaits) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  const auto c = MakeSeat("c");
  Own(*a);
  SetHungry(*b);
  Own(*c);
  a->changed = b->changed = c->changed = false;
  ASSERT_EQ(Submit(**a, Job("x")), SubmitOutcome::kAccepted);
  AwaitChange(*c);
  Advance(**c);
  AwaitChange(*b);
  Advance(**b);
  EXPECT_THAT(Claim(**b), SizeIs(1));
  EXPECT_FALSE((*a)->store().Groups()[0].mine) << "it heard of the new owner";
  EXPECT_EQ((*a)->store().Groups()[0].owner, "c");
}

TEST_F(RedisNotices, AnOwnerThatLostItsConnectionIsToldAgainWhoWaits) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  Own(*a);
  a->changed = b->changed = false;
  ASSERT_TRUE(Server().Ask({"CLIENT", "KILL", "TYPE", "pubsub"}));
  SetHungry(*b);  // nobody listens
  AwaitChange(*a);
  AwaitChange(*b);
  Quiet();
  Advance(**a);
  Quiet();
  a->changed = b->changed = false;
  ASSERT_EQ(Submit(**b, Job("x")), SubmitOutcome::kAccepted);
  AwaitChange(*a);
  Advance(**a);
  AwaitChange(*b);
  Advance(**b);
  EXPECT_THAT(Claim(**b), SizeIs(1));
}

TEST_F(RedisNotices, IfTheOwnerStandsStillWhoWaitsLooksAsSoonAsABeatIsLate) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  Advance(**b);  // nobody owns the groups yet: it has looked itself
  Own(*a);
  SetHungry(*b);
  clock_.Advance(1s);
  Advance(**a);
  Quiet();
  // Only the owner is told of it.
  ASSERT_EQ(Submit(**a, Job("x", 100ms)), SubmitOutcome::kAccepted);
  EXPECT_EQ(Advance(**b).next_steady, clock_.Now().steady + Group::kBeatLate) << "it asks to be called then";
  clock_.Advance(Group::kBeatLate - 1ms);
  EXPECT_THAT(Advance(**b).ready, IsEmpty()) << "the owner was heard of";
  clock_.Advance(1ms);
  EXPECT_THAT(Advance(**b).ready, ElementsAre("orders"));
  EXPECT_THAT(Claim(**b), SizeIs(1));
}

// Nobody waits on it, so a beat that is only late costs no scan.
TEST_F(RedisNotices, ANodeWithoutConsumersGivesASlowOwnerTime) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  Own(*a);
  clock_.Advance(1s);
  Advance(**a);
  Quiet();
  Advance(**b);
  ASSERT_EQ(Submit(**a, Job("x", 100ms)), SubmitOutcome::kAccepted);
  EXPECT_GT(Advance(**b).next_steady, clock_.Now().steady + Group::kBeatLost);
  clock_.Advance(Group::kBeatLost - 1ms);
  EXPECT_THAT(Advance(**b).ready, IsEmpty());
  clock_.Advance(1ms);
  EXPECT_THAT(Advance(**b).ready, ElementsAre("orders"));
}

TEST_F(RedisNotices, ANodeThatOwnsNothingSendsFewCommands) {
  const auto a = MakeSeat("a");
  const auto b = MakeSeat("b");
  topic_.slots = 64;
  topic_.name = "wide";
  ASSERT_TRUE(Put(**a, topic_));
  ASSERT_TRUE(Put(**b, topic_));
  Own(*a);
  (*b)->store().SetHungry("wide", true);
  (*b)->Pump();
  const size_t before = (*b)->client().calls();
  for (int second = 0; second < 30; ++second) {
    clock_.Advance(1s);
    Advance(**a);
    Quiet();
    Advance(**b);
  }
  EXPECT_LE((*b)->client().calls() - before, 30 * 7U) << "topics, and what it wants";
  for (const GroupState& group : (*b)->store().Groups()) EXPECT_EQ(group.owner, "a");
}

/// In a real Cluster, where the channels are sharded.
class RedisShardNotices : public RedisNotices {
 protected:
  void Start(real::ClusterOptions options = {}) {
    auto made = real::RedisCluster::Make(std::move(options));
    ASSERT_TRUE(made) << made.error().message;
    cluster_ = *std::move(made);
    a_ = MakeSeat("a");
    b_ = MakeSeat("b");
    Settle();
    SetHungry(*b_);
  }
  Options ClientOptions() const override {
    Options options;
    options.mode = Mode::kCluster;
    for (const uint16_t port : cluster_->Ports()) options.endpoints.push_back({"127.0.0.1", port});
    return options;
  }
  void TearDown() override {
    a_.reset();
    b_.reset();
  }
  /// All groups are a's, and b has heard of it.
  void Settle() {
    Quiet();
    Own(*a_);
  }
  /// A job that comes to b is told to a, its owner, and by that to b, without any look in between.
  void ExpectTold() {
    clock_.Advance(30ms);
    a_->changed = b_->changed = false;
    ASSERT_EQ(Submit(**b_, Job("")), SubmitOutcome::kAccepted);
    ASSERT_NO_FATAL_FAILURE(AwaitChange(*a_));
    EXPECT_THAT(Advance(**a_).ready, IsEmpty());
    ASSERT_NO_FATAL_FAILURE(AwaitChange(*b_));
    EXPECT_THAT(Advance(**b_).ready, ElementsAre("orders"));
    const auto claimed = Claim(**b_);
    ASSERT_THAT(claimed, SizeIs(1));
    EXPECT_EQ(Ack(**b_, claimed[0].token), SettleOutcome::kOk);
    Quiet();
  }
  std::string Channel() const { return KeysOfOrders(0).tag() + "group"; }
  int HomeSlot() const { return HashSlot(Channel()); }
  /// Until the owner listens at that server, and all has arrived.
  void AwaitListener(uint16_t port) {
    const auto end = real_clock_.IoNow() + 10s;
    const auto listens = [&] {
      const auto answer = cluster_->Ask(port, {"PUBSUB", "SHARDNUMSUB", Channel()});
      return answer && answer->elements.size() == 2 && answer->elements[1].integer == 1;
    };
    while (!listens()) {
      ASSERT_LT(real_clock_.IoNow(), end) << "nobody listens there";
      for (const auto until = real_clock_.IoNow() + 50ms; real_clock_.IoNow() < until;) io_.run_one_for(10ms);
    }
    Settle();
  }
  /// Plain channels that somebody listens to, at any server.
  std::set<std::string> PlainChannels() {
    std::set<std::string> all;
    for (const uint16_t port : cluster_->Ports()) {
      const auto answer = cluster_->Ask(port, {"PUBSUB", "CHANNELS"});
      TOCSIN_CHECK(answer);
      for (const real::Answer& channel : answer->elements) all.insert(channel.text);
    }
    return all;
  }

  std::unique_ptr<real::RedisCluster> cluster_;
  std::unique_ptr<Seat> a_;
  std::unique_ptr<Seat> b_;
};

TEST_F(RedisShardNotices, GoThroughTheServerOfTheirGroupWhereverThatIs) {
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_NO_FATAL_FAILURE(ExpectTold());
  EXPECT_THAT(PlainChannels(), ElementsAre("tocsin:beats", "tocsin:news")) << "these are for all";
  const uint16_t first = *cluster_->MasterOf(HomeSlot());
  const auto masters = cluster_->Masters();
  const uint16_t second = *std::ranges::find_if(masters, [&](uint16_t port) { return port != first; });
  ASSERT_TRUE(cluster_->MigrateSlot(HomeSlot(), second));
  ASSERT_NO_FATAL_FAILURE(AwaitListener(second));
  ASSERT_NO_FATAL_FAILURE(ExpectTold());
  ASSERT_TRUE(cluster_->WaitUntilInStep());
  ASSERT_EQ(cluster_->KillMasterOf(HomeSlot()).value(), second);
  const auto third = cluster_->WaitForNewMaster(HomeSlot(), second);
  ASSERT_TRUE(third) << third.error().message;
  ASSERT_NO_FATAL_FAILURE(AwaitListener(*third));
  ASSERT_NO_FATAL_FAILURE(ExpectTold());
}

TEST_F(RedisShardNotices, ArePlainOnServersThatHaveNoShardedChannels) {
  real::ClusterOptions options;
  for (const std::string_view name : {"SSUBSCRIBE", "SUNSUBSCRIBE", "SPUBLISH"}) {
    options.lines.push_back(fmt::format("rename-command {} \"\"", name));  // as in Redis 6
  }
  ASSERT_NO_FATAL_FAILURE(Start(options));
  ASSERT_NO_FATAL_FAILURE(ExpectTold());
  EXPECT_TRUE(PlainChannels().contains(Channel()));
}

}  // namespace
}  // namespace tocsin::redis
