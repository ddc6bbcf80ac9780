// The number of groups: where their keys live in a Cluster, and that all nodes of a prefix have the same.
#include <map>
#include <set>

#include <gmock/gmock.h>

#include "storage/redis/nodes_test_fixture.h"

namespace tocsin::redis {
namespace {

using testing::HasSubstr;

/// How many of the tags each master has, if the masters share the hash slots as redis-cli --cluster create does.
std::map<int, int> SharesOf(const GroupTags& tags, int masters, uint32_t begin, uint32_t count) {
  std::map<int, int> shares;
  for (uint32_t i = 0; i < count; ++i)
    ++shares[HashSlot(tags[(begin + i) % tags.size()] + "next") * masters / kHashSlots];
  return shares;
}

TEST(GroupTags, MastersShareThemEvenly) {
  for (const std::string& prefix : {std::string("tocsin"), std::string("a"), std::string(64, 'x')}) {
    for (const uint32_t groups : {64U, 256U, 4096U}) {
      const GroupTags tags(prefix, {.count = groups});
      std::set<std::string> different;
      for (uint32_t group = 0; group < groups; ++group) different.insert(tags[group]);
      EXPECT_EQ(different.size(), groups);
      for (const int masters : {1, 3, 16, 64}) {
        const int mean = static_cast<int>(groups) / masters;
        const auto shares = SharesOf(tags, masters, 0, groups);
        EXPECT_EQ(shares.size(), static_cast<size_t>(masters));
        for (const auto& [master, share] : shares) EXPECT_NEAR(share, mean, 1) << groups << " over " << masters;
      }
    }
  }
}

TEST(GroupTags, TheSlotsOfATopicAreOnAllMasters) {
  const GroupTags tags("tocsin", {});
  for (uint32_t begin = 0; begin < 64; ++begin) {
    EXPECT_EQ(SharesOf(tags, 8, begin, 8).size(), 8U) << begin;
    EXPECT_EQ(SharesOf(tags, 4, begin, 4).size(), 4U) << begin;
  }
}

class RedisGroups : public RedisNodes {
 protected:
  std::string Read(TestNode& node, uint32_t wanted) {
    const auto groups =
        Await<Groups>(node, [&](auto done) { ReadGroups(node.client(), "tocsin", wanted, std::move(done)); });
    return groups ? groups->Text() : groups.error().message;
  }
  std::string Stored() {
    const auto stored = Server().Ask({"GET", SharedKeys("tocsin").groups});
    return stored ? stored->text : "no answer";
  }
};

TEST_F(RedisGroups, TheFirstUseOfAPrefixSetsTheNumber) {
  const auto node = Node("a");
  EXPECT_EQ(Read(*node, 256), "256");
  EXPECT_EQ(Read(*node, 64), "256");
  EXPECT_EQ(Stored(), "256");
}

TEST_F(RedisGroups, ANumberThatWasLostIsPutBackAndNotGuessed) {
  const auto node = Node("a", ClockSource::kCaller, 0, 128);
  ASSERT_TRUE(Put(*node, topic_));
  EXPECT_THAT(Read(*node, 64), HasSubstr("SET {tocsin}groups \"64 plain\""));
  clock_.Advance(std::chrono::seconds(2));
  Advance(*node);
  node->Pump();
  EXPECT_EQ(Stored(), "128");
  EXPECT_EQ(Read(*node, 64), "128");
}

TEST_F(RedisGroups, TheGroupsOfAnEarlierProgramKeepTheirTags) {
  const auto node = Node("a");
  ASSERT_TRUE(Server().Ask({"SET", SharedKeys("tocsin").groups, "64 plain"}));
  EXPECT_EQ(Read(*node, 256), "64 plain");
  const GroupTags tags("tocsin", {.plain = true});
  for (uint32_t group = 0; group < kGroups; ++group) EXPECT_EQ(tags[group], fmt::format("{{tocsin.{}}}", group));
}

TEST_F(RedisGroups, ANumberThatCannotBeIsRefused) {
  const auto node = Node("a");
  for (const std::string text : {"32", "100", "8192", "64 ", "64 plainly", "x", "-64"}) {
    ASSERT_TRUE(Server().Ask({"SET", SharedKeys("tocsin").groups, text}));
    EXPECT_THAT(Read(*node, 64), HasSubstr("not a power of two from 64 to 4096")) << text;
  }
}

TEST_F(RedisGroups, JobsLiveInAllOfFourThousandGroups) {
  const auto node = Node("a", ClockSource::kCaller, 0, kGroupsMax);
  node->OwnAll();
  topic_.slots = 1024;
  ASSERT_TRUE(Put(*node, topic_));
  for (const uint32_t slot : {0U, 500U, 1023U}) {
    EXPECT_EQ(Submit(*node, Job(fmt::format("{}", slot), std::chrono::seconds(1), slot)), SubmitOutcome::kAccepted);
  }
  clock_.Advance(std::chrono::seconds(1));
  Advance(*node);
  EXPECT_EQ(Claim(*node).size(), 3U);
}

}  // namespace
}  // namespace tocsin::redis
