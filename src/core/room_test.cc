// Calls whose jobs need room in memory. Reserves wait for it before they claim anything; lookups and listings take it
// before they read.
#include <set>

#include <gtest/gtest.h>

#include "core/test_node.h"

namespace tocsin {
namespace {

constexpr size_t kJobBytes = 1000;

/// What all calls of a test have together.
struct Memory {
  size_t bytes_max = 0;
  size_t bytes = 0;
  size_t most = 0;
};

class RoomOf final : public JobRoom {
 public:
  explicit RoomOf(Memory& memory) : memory_(memory) {}
  ~RoomOf() override { Lower(0, 0); }
  RoomOf(const RoomOf&) = delete;
  RoomOf& operator=(const RoomOf&) = delete;

  bool Reach(size_t /*jobs*/, size_t bytes) override {
    if (bytes <= bytes_) return true;
    if (memory_.bytes + bytes - bytes_ > memory_.bytes_max) return false;
    memory_.bytes += bytes - bytes_;
    memory_.most = std::max(memory_.most, memory_.bytes);
    bytes_ = bytes;
    return true;
  }
  void Lower(size_t /*jobs*/, size_t bytes) override {
    if (bytes >= bytes_) return;
    memory_.bytes -= bytes_ - bytes;
    bytes_ = bytes;
  }

 private:
  Memory& memory_;
  size_t bytes_ = 0;
};

class RoomTest : public testing::TestWithParam<std::tuple<size_t, bool>> {
 protected:
  struct Waiting {
    TestNode::Reply<JobBatch> reply;
    std::shared_ptr<RoomOf> room;
    ReserveId id;
  };

  void SetUp() override { ASSERT_TRUE(node.PutTopic(DefaultTopic("t"))); }

  void Submit(size_t jobs) {
    const std::string payload(kJobBytes, 'x');
    for (size_t i = 0; i < jobs; ++i) ASSERT_TRUE(node.Submit("t", {NewJob{.payload = payload}}, i));
  }
  std::unique_ptr<Waiting> Reserve(Memory& of, Millis wait = Millis(10'000), size_t max = 1, size_t shard = 0) {
    auto waiting = std::make_unique<Waiting>();
    waiting->room = std::make_shared<RoomOf>(of);
    waiting->id =
        node.service->Reserve(node.at(shard), {"t", max, wait, Millis(0), "", waiting->room}, waiting->reply.Catch());
    node.Run();
    return waiting;
  }
  size_t Claims() const {
    size_t claims = 0;
    for (const auto& store : node.stores) claims += store->claims;
    return claims;
  }
  uint64_t Delivered() { return node.Topics()[0].delivered; }

  Memory memory;
  TestNode node{std::get<0>(GetParam()), std::get<1>(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(Shards, RoomTest, testing::Combine(testing::Values(1, 2, 4), testing::Bool()),
                         [](const auto& info) {
                           return fmt::format("{}{}", std::get<0>(info.param),
                                              std::get<1>(info.param) ? "late" : "at_once");
                         });

TEST_P(RoomTest, AReserveIsParkedUntilThereIsRoom) {
  Submit(1);
  const auto waiting = Reserve(memory);
  node.Pass(Millis(1000));
  EXPECT_FALSE(waiting->reply.got);
  EXPECT_EQ(Delivered(), 0U) << "nothing is claimed and released";
  memory.bytes_max = kJobBytes;
  node.Pass(Millis(10));
  ASSERT_TRUE(waiting->reply.got);
  ASSERT_EQ((*waiting->reply.got)->jobs.size(), 1U);
  EXPECT_EQ((*waiting->reply.got)->jobs[0].attempt, 1U);
  EXPECT_EQ(memory.bytes, kJobBytes);
}

TEST_P(RoomTest, AReserveWithoutRoomIsAnsweredEmptyAtItsDeadline) {
  Submit(1);
  const auto waiting = Reserve(memory, Millis(700));
  node.Pass(Millis(699));
  EXPECT_FALSE(waiting->reply.got);
  node.Pass(Millis(10));
  ASSERT_TRUE(waiting->reply.got);
  EXPECT_TRUE((*waiting->reply.got)->jobs.empty());
  EXPECT_EQ(Delivered(), 0U);
}

TEST_P(RoomTest, AReserveWithoutAWaitIsRefused) {
  Submit(4);
  const auto refused = Reserve(memory, Millis(0));
  ASSERT_TRUE(refused->reply.got);
  ASSERT_FALSE(*refused->reply.got);
  EXPECT_EQ(refused->reply.got->error().code, Code::kOverloaded);
  EXPECT_EQ(Delivered(), 0U);
  Memory enough{.bytes_max = kJobBytes};
  const auto served = Reserve(enough, Millis(0));
  EXPECT_EQ((*served->reply.got)->jobs.size(), 1U);
}

TEST_P(RoomTest, AClaimTakesNoMoreThanItsRoom) {
  Submit(20);
  memory.bytes_max = 3 * kJobBytes + kJobBytes / 2;
  size_t got = 0;
  while (got < 20) {
    const auto waiting = Reserve(memory, Millis(10'000), 100);
    ASSERT_TRUE(waiting->reply.got);
    const size_t jobs = (*waiting->reply.got)->jobs.size();
    ASSERT_GE(jobs, 1U);
    EXPECT_LE(jobs, 3U);
    got += jobs;
  }
  EXPECT_EQ(got, 20U);
}

// The first one may be of an access token that has used up its share.
TEST_P(RoomTest, AReserveWithoutRoomDoesNotHoldUpOneThatHasRoom) {
  const auto cramped = Reserve(memory);
  Memory enough{.bytes_max = 100 * kJobBytes};
  std::vector<std::unique_ptr<Waiting>> others;
  for (size_t i = 0; i < 5; ++i) others.push_back(Reserve(enough, Millis(10'000), 1, i));
  Submit(5);
  node.Pass(Millis(20));
  for (const auto& other : others) {
    ASSERT_TRUE(other->reply.got);
    EXPECT_EQ((*other->reply.got)->jobs.size(), 1U);
  }
  EXPECT_FALSE(cramped->reply.got);
}

TEST_P(RoomTest, ManyReservesShareLittleRoom) {
  constexpr size_t kReserves = 40;
  memory.bytes_max = 4 * kJobBytes;
  std::vector<std::unique_ptr<Waiting>> waiting;
  for (size_t i = 0; i < kReserves; ++i) waiting.push_back(Reserve(memory, Millis(60'000), 2, i));
  Submit(2 * kReserves);
  size_t got = 0;
  for (int round = 0; round < 1000 && got < 2 * kReserves; ++round) {
    for (auto& each : waiting) {
      if (!each->reply.got) continue;
      ASSERT_TRUE(*each->reply.got);
      got += (*each->reply.got)->jobs.size();
      each.reset();  // its answer is sent: it gives back its room
      each = Reserve(memory, Millis(60'000), 2);
    }
    node.Pass(Millis(5));
  }
  EXPECT_EQ(got, 2 * kReserves);
  EXPECT_EQ(Delivered(), 2 * kReserves) << "each once: nothing was released";
  EXPECT_LE(memory.most, memory.bytes_max);
  for (auto& each : waiting) node.service->CancelReserve(each->id);
  node.Run();
}

// However many reserves there are, and however many jobs.
TEST_P(RoomTest, LookingForRoomIsBounded) {
  Submit(50);
  std::vector<std::unique_ptr<Waiting>> waiting;
  for (size_t i = 0; i < 300; ++i) waiting.push_back(Reserve(memory, Millis(60'000), 10'000, i));
  const size_t before = Claims();
  node.Pass(Millis(100));
  EXPECT_LE(Claims() - before, 20U * 20) << "in 20 looks";
  EXPECT_EQ(Delivered(), 0U);
  for (auto& each : waiting) EXPECT_FALSE(each->reply.got);
  node.Stop();
}

TEST_P(RoomTest, AReserveThatIsCancelledDuringItsClaimGivesItsRoomBack) {
  memory.bytes_max = kJobBytes;
  std::vector<Task> held;
  auto waiting = Reserve(memory);
  for (auto& store : node.stores) store->held = &held;
  Submit(1);
  ASSERT_EQ(held.size(), 1U);
  node.service->CancelReserve(waiting->id);
  node.Run();
  ASSERT_TRUE(waiting->reply.got);
  EXPECT_TRUE((*waiting->reply.got)->jobs.empty());
  waiting->room.reset();
  EXPECT_EQ(memory.bytes, kJobBytes) << "the claim is under way";
  for (auto& store : node.stores) store->held = nullptr;
  held[0]();
  node.Run();
  EXPECT_EQ(memory.bytes, 0U);
  EXPECT_EQ(node.Topics()[0].leased, 0U);
}

TEST_P(RoomTest, ALookupTakesRoomBeforeItReads) {
  std::vector<std::string> ids;
  const std::string payload(kJobBytes, 'x');
  for (size_t i = 0; i < 8; ++i) {
    ids.push_back(UidText((*node.Submit("t", {NewJob{.payload = payload}}, i))[0].uid));
  }
  for (const std::string& id : ids) {
    TestNode::Reply<JobBatch> refused;
    RoomOf none(memory);
    node.service->Find(node.at(1), {"t", {{.id = id}}, nullptr, &none}, refused.Catch());
    node.Run();
    ASSERT_TRUE(refused.got);
    ASSERT_FALSE(*refused.got);
    EXPECT_EQ(refused.got->error().code, Code::kOverloaded);
    for (const auto& store : node.stores) EXPECT_EQ(store->shown, 0U);
  }
  memory.bytes_max = kJobBytes;
  for (const std::string& id : ids) {
    TestNode::Reply<JobBatch> found;
    RoomOf room(memory);
    node.service->Find(node.at(1), {"t", {{.id = id}}, nullptr, &room}, found.Catch());
    node.Run();
    ASSERT_TRUE(found.got && *found.got);
    EXPECT_EQ((*found.got)->jobs[0].payload, payload);
    EXPECT_EQ(memory.bytes, kJobBytes);
  }
  EXPECT_EQ(memory.bytes, 0U);
}

TEST_P(RoomTest, APageEndsWhereThereIsNoMoreRoom) {
  Submit(20);
  TestNode::Reply<Page> refused;
  RoomOf none(memory);
  node.service->List(node.at(1), {.topic = "t", .room = &none}, refused.Catch());
  node.Run();
  ASSERT_TRUE(refused.got);
  ASSERT_FALSE(*refused.got);
  EXPECT_EQ(refused.got->error().code, Code::kOverloaded);
  memory.bytes_max = 3 * kJobBytes + kJobBytes / 2;
  std::set<Uid> seen;
  std::string cursor;
  do {
    TestNode::Reply<Page> page;
    RoomOf room(memory);
    node.service->List(node.at(1), {.topic = "t", .cursor = cursor, .room = &room}, page.Catch());
    node.Run();
    ASSERT_TRUE(page.got && *page.got);
    const size_t jobs = (*page.got)->jobs.jobs.size();
    ASSERT_GE(jobs, 1U);
    EXPECT_LE(jobs, 3U);
    EXPECT_EQ(memory.bytes, jobs * kJobBytes);
    for (const JobView& job : (*page.got)->jobs.jobs) EXPECT_TRUE(seen.insert(job.uid).second);
    cursor = (*page.got)->cursor;
  } while (!cursor.empty());
  EXPECT_EQ(seen.size(), 20U);
}

TEST_P(RoomTest, ManyListingsShareLittleRoom) {
  Submit(100);
  for (auto& store : node.stores) store->list_max = 2;  // so that each takes many turns
  memory.bytes_max = 10 * kJobBytes;
  std::vector<TestNode::Reply<Page>> pages(40);
  std::deque<RoomOf> rooms;
  for (size_t i = 0; i < pages.size(); ++i) {
    RoomOf& room = rooms.emplace_back(memory);
    node.service->List(node.at(i), {.topic = "t", .room = &room}, pages[i].Catch());
  }
  node.Run();
  EXPECT_LE(memory.most, memory.bytes_max);
  size_t listed = 0;
  for (const auto& page : pages) {
    ASSERT_TRUE(page.got);
    if (*page.got) {
      listed += (*page.got)->jobs.jobs.size();
    } else {
      EXPECT_EQ(page.got->error().code, Code::kOverloaded);
    }
  }
  EXPECT_EQ(listed * kJobBytes, memory.bytes);
  EXPECT_GT(listed, 5U);
}

}  // namespace
}  // namespace tocsin
