#include "storage/journal/cursor.h"

#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

TEST(Cursor, NumbersThatAreMissingStayAsTheyAre) {
  std::array<uint64_t, 3> numbers{1, 2, 3};
  EXPECT_TRUE(ParseCursor("", numbers));
  EXPECT_EQ(numbers, (std::array<uint64_t, 3>{1, 2, 3}));
  EXPECT_TRUE(ParseCursor("7.0", numbers));
  EXPECT_EQ(numbers, (std::array<uint64_t, 3>{7, 0, 3}));
  EXPECT_TRUE(ParseCursor("4294967295.1.18446744073709551615", numbers));
  EXPECT_EQ(numbers, (std::array<uint64_t, 3>{UINT32_MAX, 1, UINT64_MAX}));
  uint32_t at = 9;
  EXPECT_TRUE(ParseCursor("", at));
  EXPECT_EQ(at, 9U);
  EXPECT_TRUE(ParseCursor("12", at));
  EXPECT_EQ(at, 12U);
}

TEST(Cursor, OtherTextsAreRefused) {
  for (const char* bad : {"0", "x", "1x", "1.", ".1", "1..2", "-1", " 1", "1,2", "4294967296", "1.2.3.4",
                          "1.18446744073709551616", "1.2.3."}) {
    std::array<uint64_t, 3> numbers{1};
    const Status status = ParseCursor(bad, numbers);
    ASSERT_FALSE(status) << bad;
    EXPECT_EQ(status.error().field, "cursor");
  }
  uint32_t at = 1;
  EXPECT_FALSE(ParseCursor("1.2", at));
}

}  // namespace
}  // namespace tocsin::journal
