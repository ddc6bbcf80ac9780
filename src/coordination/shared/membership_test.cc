#include "coordination/shared/membership.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(MemberRecord, ComesBackAsItWas) {
  const Member member{.id = "a-1", .http = "10.0.0.1:7420", .resp = "[::1]:7421", .joined = FromMs(1'800'000'000'123)};
  const Member read = DecodeMember("a-1", EncodeMember(member));
  EXPECT_EQ(read.id, "a-1");
  EXPECT_EQ(read.http, "10.0.0.1:7420");
  EXPECT_EQ(read.resp, "[::1]:7421");
  EXPECT_EQ(read.joined, member.joined);
}

TEST(MemberRecord, SkipsWhatALaterVersionMayAdd) {
  const Member read = DecodeMember("a", "zone=eu=1\nhttp=h\nno value\n\nresp=r");
  EXPECT_EQ(read.http, "h");
  EXPECT_EQ(read.resp, "r");
}

TEST(MemberRecord, IsAMemberWhateverItSays) {
  for (const std::string_view record : {"", "\n", "=", "joined_ms=x", "\xFF\xFE", "joined_ms=99999999999999999999"}) {
    const Member read = DecodeMember("a", record);
    EXPECT_EQ(read.id, "a");
    EXPECT_EQ(read.http, "");
    EXPECT_EQ(read.joined, Time{});
  }
}

}  // namespace
}  // namespace tocsin
