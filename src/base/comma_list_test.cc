#include "base/comma_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CommaListTest, ItemsStandBetweenCommas) {
  EXPECT_THAT(CommaList(""), IsEmpty());
  EXPECT_THAT(CommaList("one"), ElementsAre("one"));
  EXPECT_THAT(CommaList("one, two three ,4"), ElementsAre("one", "two three", "4"));
  EXPECT_THAT(CommaList("one,"), ElementsAre("one"));
  EXPECT_THAT(CommaList(",one,,"), ElementsAre("", "one", ""));
  EXPECT_THAT(CommaList("  "), ElementsAre(""));
}

}  // namespace
}  // namespace tocsin
