// What holds for every coordinator, also for one that knows no other nodes.
#include "spi/contract/coordinator_contract.h"

namespace tocsin {
namespace {

TEST_P(CoordinatorContract, TheFirstViewHasTheNodeItself) {
  Node& a = Join("a");
  const std::optional<Report> first = a->Next(Now() + kSoon);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->members.joined);
  ASSERT_EQ(IdsOf(first->members), Ids{"a"});
  EXPECT_EQ(first->members.members[0].http, "http-of-a");
  EXPECT_EQ(first->members.members[0].resp, "resp-of-a");
  EXPECT_NE(first->members.members[0].joined, Time{});
}

TEST_P(CoordinatorContract, RefreshAnswersThoughNothingHasChanged) {
  Node& a = Join("a");
  ASSERT_TRUE(Sees(a, {"a"}));
  for (int i = 0; i < 3; ++i) {
    const std::optional<Report> answer = Refreshed(a);
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->members.joined);
    EXPECT_EQ(IdsOf(answer->members), Ids{"a"});
  }
}

TEST_P(CoordinatorContract, TellsWhenItWasLastHeardOf) {
  Node& a = Join("a");
  ASSERT_TRUE(Sees(a, {"a"}));
  const auto current = [](const Report& report) { return report.kind == Report::Kind::kCurrent; };
  a->AskCurrent();
  const std::optional<Report> first = Await(a, current, "who is there", kSoon);
  ASSERT_TRUE(first);
  const Time heard = first->members.members.at(0).heard;
  EXPECT_NE(heard, Time{});
  // It gets newer by itself, and that is no change.
  const TimePoint deadline = Now() + session() + kSoon;
  while (Now() < deadline) {
    StaysQuiet(a, session() / 10);
    a->AskCurrent();
    const std::optional<Report> next = a->Next(deadline);
    ASSERT_TRUE(next);
    ASSERT_EQ(next->kind, Report::Kind::kCurrent) << next->text;
    if (next->members.members.at(0).heard > heard) return;
  }
  ADD_FAILURE() << "it was never heard of again";
}

TEST_P(CoordinatorContract, SaysNothingAfterItLeft) {
  Node& a = Join("a");
  ASSERT_TRUE(Sees(a, {"a"}));
  const std::optional<Report> left = Left(a);
  ASSERT_TRUE(left);
  EXPECT_TRUE(left->ok) << left->text;
  a->Refresh();
  StaysQuiet(a, session() / 2);
}

TEST_P(CoordinatorContract, LeavesBeforeItHasJoined) {
  Node& a = Join("a");
  const std::optional<Report> left = Left(a);
  ASSERT_TRUE(left);
  StaysQuiet(a, session() / 2);
}

}  // namespace
}  // namespace tocsin
