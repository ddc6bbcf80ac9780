#include "storage/journal/holders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

TEST(Holders, LeasesOfOneNameShareIt) {
  Holders holders;
  const uint16_t ann = holders.Hold("ann", 2, true);
  const uint16_t bob = holders.Hold("bob", 1, true);
  EXPECT_NE(ann, bob);
  EXPECT_EQ(holders.Hold("ann", 1, true), ann);
  EXPECT_EQ(holders.NameOf(ann), "ann");
  EXPECT_EQ(holders.NameOf(bob), "bob");
  EXPECT_EQ(holders.size(), 2U);
  const size_t both = holders.held_bytes();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(holders.size(), 2U) << i;
    holders.Release(ann);
  }
  EXPECT_EQ(holders.size(), 1U) << "forgotten with its last lease";
  EXPECT_LT(holders.held_bytes(), both);
  holders.Release(bob);
  EXPECT_EQ(holders.held_bytes(), 0U);
  EXPECT_EQ(holders.NameOf(holders.Hold("cyd", 1, true)), "cyd") << "numbers are used again";
}

TEST(Holders, NoNameHasNoNumber) {
  Holders holders;
  EXPECT_EQ(holders.Hold("", 5, true), Holders::kNone);
  EXPECT_EQ(holders.Hold("nothing claimed", 0, true), Holders::kNone);
  EXPECT_EQ(holders.NameOf(Holders::kNone), "");
  holders.Release(Holders::kNone);
  EXPECT_EQ(holders.size(), 0U);
}

TEST(Holders, OnlyKnownNamesIfMemoryIsShort) {
  Holders holders;
  const uint16_t ann = holders.Hold("ann", 1, true);
  EXPECT_EQ(holders.Hold("ann", 1, false), ann);
  EXPECT_EQ(holders.Hold("bob", 1, false), Holders::kNone);
}

TEST(Holders, ThereIsALimit) {
  Holders holders;
  for (uint32_t i = 1; i <= UINT16_MAX; ++i) ASSERT_EQ(holders.Hold(fmt::format("h{}", i), 1, true), i);
  EXPECT_EQ(holders.Hold("one more", 1, true), Holders::kNone);
  holders.Release(7);
  EXPECT_EQ(holders.Hold("one more", 1, true), 7U);
  EXPECT_EQ(holders.Hold("another", 1, true), Holders::kNone);
}

}  // namespace
}  // namespace tocsin::journal
