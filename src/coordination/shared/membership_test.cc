#include "coordination/shared/membership.h"

#include <gtest/gtest.h>

namespace tocsin {
namespace {

TEST(MemberRecord, ComesBackAsItWas) {
  const Member member{.id = "a-1",
                      .http = "10.0.0.1:7420",
                      .resp = "[::1]:7421",
                      .version = "1.2.3",
                      .joined = FromMs(1'800'000'000'123)};
  const Member read = DecodeMember("a-1", EncodeMember(member));
  EXPECT_EQ(read.id, "a-1");
  EXPECT_EQ(read.http, "10.0.0.1:7420");
  EXPECT_EQ(read.resp, "[::1]:7421");
  EXPECT_EQ(read.version, "1.2.3");
  EXPECT_EQ(read.joined, member.joined);
  EXPECT_FALSE(read.follows_first);
  EXPECT_TRUE(DecodeMember("a-1", EncodeMember({.follows_first = true})).follows_first);
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

class Listing final : public LeasedCoordinator {
 public:
  Listing(boost::asio::io_context& io, const Clock& clock) : LeasedCoordinator(io, clock, "test", "it has run out") {}
  void Join(Member self, std::move_only_function<void(const Members&)> changed) override {
    BeginJoin(std::move(self), std::move(changed));
  }
  void Leave(Done<void> done) override { BeginLeave(std::move(done)); }
  void Refresh() override {}
  using LeasedCoordinator::Adopt;
  using LeasedCoordinator::NoteLost;

  std::vector<std::string> Lost() const {
    std::vector<std::string> ids;
    for (const Member& member : Current().lost) ids.push_back(member.id);
    return ids;
  }

 private:
  void OnTimer() override {}
};

TEST(LostMembers, AreTheLastFewUntilTheyAreBack) {
  boost::asio::io_context io;
  const RealClock clock;
  Listing listing(io, clock);
  listing.Join({.id = "self"}, [](const Members&) {});
  for (size_t i = 0; i < Members::kLostMax + 4; ++i) listing.NoteLost({.id = fmt::format("n{:02}", i)});
  EXPECT_EQ(listing.Lost().size(), Members::kLostMax);
  EXPECT_EQ(listing.Lost().front(), "n19");
  EXPECT_EQ(listing.Lost().back(), "n04");
  listing.NoteLost({.id = "n05"});
  EXPECT_EQ(listing.Lost().size(), Members::kLostMax) << "each is there once";
  EXPECT_EQ(listing.Lost().front(), "n05");
  listing.Adopt({{.id = "n05"}, {.id = "n19"}, {.id = "self"}}, true);
  EXPECT_EQ(listing.Lost().size(), Members::kLostMax - 2);
  EXPECT_EQ(listing.Lost().front(), "n18");
}

}  // namespace
}  // namespace tocsin
