#include "config/start_time.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(StartTime, IsADateOrMilliseconds) {
  EXPECT_EQ(ParseStartTime("2027-01-15T08:00:00Z"), FromMs(1'800'000'000'000));
  EXPECT_EQ(ParseStartTime("1800000000001"), FromMs(1'800'000'000'001));
  EXPECT_EQ(ParseStartTime("2000-01-01T00:00:00Z"), FromMs(946'684'800'000));
  EXPECT_EQ(ParseStartTime("2028-02-29T23:59:59Z"), FromMs(1'835'481'599'000));
}

TEST(StartTime, IsOfThisCenturyAndExact) {
  for (const char* text :
       {"", "now", "1800000000", "1800000000000000", "-1", "1999-12-31T23:59:59Z", "2100-01-01T00:00:00Z",
        "2027-02-29T00:00:00Z", "2027-13-01T00:00:00Z", "2027-01-01T24:00:00Z", "2027-01-01T00:60:00Z",
        "2027-01-01 00:00:00Z", "2027-01-01T00:00:00", "2027-01-01T00:00:00+08:00", "2027-1-01T000:00:00Z"}) {
    EXPECT_FALSE(ParseStartTime(text)) << text;
  }
}

}  // namespace
}  // namespace tocsin
