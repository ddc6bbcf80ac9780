#include "core/uid_set.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(UidSetTest, EveryIdIsInsertedOnce) {
  constexpr Uid kIds = 100'000;
  UidSet set;
  for (Uid i = 1; i <= kIds; ++i) ASSERT_TRUE(set.Insert(i << kSlotBits));
  for (Uid i = 1; i <= kIds; ++i) ASSERT_FALSE(set.Insert(i << kSlotBits));
  EXPECT_EQ(set.size(), kIds);
  EXPECT_TRUE(set.Insert(1));
  set = UidSet();
  EXPECT_EQ(set.size(), 0U);
  EXPECT_TRUE(set.Insert(1));
}

}  // namespace
}  // namespace tocsin
