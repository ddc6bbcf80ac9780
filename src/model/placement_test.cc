#include "model/placement.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tocsin {
namespace {

/// Names like those of real nodes: equal except for a random part.
std::vector<std::string> Nodes(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::string> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(fmt::format("node-{}-{:08x}", i + 1, random() & 0xFFFFFFFFU));
  std::ranges::sort(ids);
  return ids;
}

/// The owner of every group.
std::array<std::string, kGroups> Owners(const std::vector<std::string>& ids) {
  std::array<std::string, kGroups> owners;
  for (uint32_t group = 0; group < kGroups; ++group) owners[group] = ids[OwnerOf(group, ids)];
  return owners;
}

std::vector<std::string> Without(std::vector<std::string> ids, const std::string& gone) {
  std::erase(ids, gone);
  return ids;
}

TEST(Assignment, OneMemberOwnsEverything) {
  for (const std::string& owner : Owners({"alone"})) EXPECT_EQ(owner, "alone");
}

// A binomial with 64 tries: the share of a member is within some deviations of the mean, and over many sets of members
// the mean is what it must be.
TEST(Assignment, IsBalanced) {
  constexpr uint64_t kSets = 200;
  for (size_t members = 2; members <= 16; ++members) {
    const double mean = static_cast<double>(kGroups) / static_cast<double>(members);
    double squares = 0;
    std::map<size_t, size_t> by_rank;  // the first of the sorted members gets no more than the last
    for (uint64_t seed = 0; seed < kSets; ++seed) {
      const std::vector<std::string> ids = Nodes(members, seed * 100 + members);
      std::vector<size_t> share(members);
      for (uint32_t group = 0; group < kGroups; ++group) ++share[OwnerOf(group, ids)];
      for (size_t i = 0; i < members; ++i) {
        by_rank[i] += share[i];
        squares += (static_cast<double>(share[i]) - mean) * (static_cast<double>(share[i]) - mean);
      }
    }
    const double variance = squares / static_cast<double>(kSets * members);
    const double expected = mean * (1 - 1 / static_cast<double>(members));
    EXPECT_NEAR(variance, expected, 0.25 * expected) << members << " members";
    for (const auto& [rank, groups] : by_rank) {
      EXPECT_NEAR(static_cast<double>(groups) / kSets, mean, 0.1 * mean) << rank << " of " << members;
    }
  }
}

TEST(Assignment, ALossMovesOnlyWhatTheMemberHad) {
  for (size_t members = 2; members <= 16; ++members) {
    const std::vector<std::string> ids = Nodes(members, members);
    const auto before = Owners(ids);
    for (const std::string& gone : ids) {
      const auto after = Owners(Without(ids, gone));
      for (uint32_t group = 0; group < kGroups; ++group) {
        if (before[group] != gone) EXPECT_EQ(after[group], before[group]) << group;
        EXPECT_NE(after[group], gone);
      }
    }
  }
}

TEST(Assignment, AJoinMovesOnlyWhatTheMemberGets) {
  for (size_t members = 2; members <= 16; ++members) {
    const std::vector<std::string> ids = Nodes(members, members);
    const auto after = Owners(ids);
    for (const std::string& joined : ids) {
      const auto before = Owners(Without(ids, joined));
      for (uint32_t group = 0; group < kGroups; ++group) {
        if (after[group] != joined) EXPECT_EQ(after[group], before[group]) << group;
      }
    }
  }
}

// What a member had goes to all others, not to its neighbour.
TEST(Assignment, ALossIsSharedByTheOthers) {
  const std::vector<std::string> ids = Nodes(4, 7);
  const auto before = Owners(ids);
  const auto after = Owners(Without(ids, ids[1]));
  std::map<std::string, int> gained;
  for (uint32_t group = 0; group < kGroups; ++group) {
    if (before[group] == ids[1]) ++gained[after[group]];
  }
  EXPECT_EQ(gained.size(), 3U);
}

// Nodes with the same members agree, whatever the order in which members came and groups are asked for.
TEST(Assignment, IsTheSameInWhateverOrderItIsComputed) {
  const std::vector<std::string> ids = Nodes(9, 3);
  const auto expected = Owners(ids);
  std::mt19937_64 random(1);
  std::vector<uint32_t> groups(kGroups);
  for (uint32_t group = 0; group < kGroups; ++group) groups[group] = group;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> shuffled = ids;
    std::ranges::shuffle(shuffled, random);
    std::ranges::shuffle(groups, random);
    for (const uint32_t group : groups) EXPECT_EQ(shuffled[OwnerOf(group, shuffled)], expected[group]);
  }
}

// Part of what nodes of different versions agree on: it never changes.
TEST(Assignment, IsPinned) {
  const std::vector<std::string> ids = {"a", "b", "c"};
  std::string owners;
  for (uint32_t group = 0; group < kGroups; ++group) owners += ids[OwnerOf(group, ids)];
  EXPECT_EQ(owners, "cbbbbacbacbbcacabccacbcaccabcbbbbcbbcbbbcbbcaabbccbcbaabbabcbbac");
}

TEST(Assignment, OfAllGroupsIsThatOfEach) {
  const std::vector<std::string> ids = Nodes(100, 3);
  const std::vector<size_t> owners = OwnersOf(kGroupsMax, ids);
  for (uint32_t group = 0; group < kGroupsMax; ++group) ASSERT_EQ(owners[group], OwnerOf(group, ids));
}

TEST(Assignment, GroupsAgreeWithThePlacementOnShards) {
  for (const uint32_t groups : {kGroups, kGroupsMax}) {
    for (uint32_t shards = 1; shards <= kGroups; shards *= 2) {
      const Placement placement{shards};
      for (const std::string_view topic : {"orders", "payments", "a", "mail/retries", "x-9"}) {
        for (uint32_t slot = 0; slot < 1024; ++slot) {
          const uint32_t group = GroupOf(topic, slot, groups);
          ASSERT_LT(group, groups);
          ASSERT_EQ(group % shards, placement.ShardOf(placement.HomeOf(topic), slot)) << topic << ' ' << slot;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tocsin
