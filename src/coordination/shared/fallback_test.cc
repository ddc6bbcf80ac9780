#include "coordination/shared/fallback.h"

#include <gmock/gmock.h>

#include "base/log.h"

namespace tocsin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Millis kPatience{20};

/// A list of members that the test changes.
class TestCoordinator final : public LeasedCoordinator {
 public:
  TestCoordinator(boost::asio::io_context& io, const Clock& clock, std::string_view kind)
      : LeasedCoordinator(io, clock, kind, "lapsed") {}

  void Join(Member self, std::move_only_function<void(const Members&)> changed) override {
    BeginJoin(std::move(self), std::move(changed));
  }
  void Leave(Done<void> done) override { BeginLeave(std::move(done)); }
  void Refresh() override { ++refreshes; }

  void Say(std::vector<Member> members, bool joined = true) {
    view_ = {.members = std::move(members), .joined = joined};
    Report();
  }
  void EndLeave(Status status) { leave_done_(std::move(status)); }
  bool says_follows_first() const { return self_.follows_first; }

  int refreshes = 0;

 private:
  void OnTimer() override {}
};

Member Following(std::string id) { return {.id = std::move(id), .follows_first = true}; }
Member Alone(std::string id) { return {.id = std::move(id)}; }

class FallbackTest : public testing::Test {
 protected:
  void SetUp() override {
    SetLogLevel(LogLevel::kOff);
    auto first = std::make_unique<TestCoordinator>(io_, clock_, "first");
    auto second = std::make_unique<TestCoordinator>(io_, clock_, "second");
    first_ = first.get();
    second_ = second.get();
    both_.emplace(io_, std::move(first), std::move(second), kPatience);
    both_->Join({.id = "me"}, [this](const Members& members) {
      std::string text = members.joined ? "in" : "out";
      for (const Member& member : members.members) text += " " + member.id;
      reports_.push_back(std::move(text));
    });
  }
  std::vector<std::string> Reports() { return std::exchange(reports_, {}); }
  /// Lets the patience of a node that starts end.
  void Wait() { io_.run(); }

  RealClock clock_;
  boost::asio::io_context io_;
  TestCoordinator* first_ = nullptr;
  TestCoordinator* second_ = nullptr;
  std::optional<FallbackCoordinator> both_;
  std::vector<std::string> reports_;
};

TEST_F(FallbackTest, TheFirstDecidesWhileItCan) {
  second_->Say({Alone("me"), Alone("other")});
  Reports();
  first_->Say({Alone("me"), Alone("third")});
  EXPECT_THAT(Reports(), ElementsAre("in me third"));
  EXPECT_TRUE(second_->says_follows_first());
  second_->Say({Following("me")});
  EXPECT_THAT(Reports(), IsEmpty());
  both_->Refresh();
  EXPECT_EQ(first_->refreshes, 1);
}

TEST_F(FallbackTest, TheSecondDecidesOnceNobodyFollowsTheFirst) {
  second_->Say({Following("dead"), Following("me"), Following("other")});
  first_->Say({Alone("dead"), Alone("me"), Alone("other")});
  Reports();
  first_->Say({Alone("dead"), Alone("other")}, false);
  EXPECT_FALSE(second_->says_follows_first());
  EXPECT_THAT(Reports(), ElementsAre("out dead other"));
  second_->Say({Following("dead"), Alone("me"), Alone("other")});
  EXPECT_THAT(Reports(), ElementsAre("out dead other")) << "one still follows the first, as far as anybody knows";
  second_->Say({Alone("me"), Alone("other")});
  EXPECT_THAT(Reports(), ElementsAre("in me other"));
  EXPECT_THAT(both_->Health().state, HasSubstr("second"));
  both_->Refresh();
  EXPECT_EQ(second_->refreshes, 3) << "one for each change of what this node follows";
}

TEST_F(FallbackTest, ANodeThatAloneHasLostTheFirstFollowsNeither) {
  first_->Say({Alone("me"), Alone("other")});
  second_->Say({Following("me"), Following("other")});
  Reports();
  first_->Say({Alone("other")}, false);
  second_->Say({Alone("me"), Following("other")});
  EXPECT_THAT(Reports(), ElementsAre("out other", "out other"));
}

TEST_F(FallbackTest, BetweenTwoListsANodeIsInNeither) {
  Wait();
  second_->Say({Alone("me"), Alone("other")});
  EXPECT_THAT(Reports(), ElementsAre("out", "in me other"));
  first_->Say({Alone("me")});
  EXPECT_THAT(Reports(), ElementsAre("out", "in me"));
}

TEST_F(FallbackTest, ANodeThatStartsWaitsForTheFirst) {
  second_->Say({Alone("me")});
  EXPECT_THAT(Reports(), ElementsAre("out"));
  Wait();
  EXPECT_THAT(Reports(), ElementsAre("in me"));
}

TEST_F(FallbackTest, LeavesBoth) {
  std::optional<Status> left;
  both_->Leave([&left](Result<void> result) { left = std::move(result); });
  first_->EndLeave({});
  EXPECT_FALSE(left);
  second_->EndLeave(Fail(Code::kUnavailable, "away"));
  ASSERT_TRUE(left);
  EXPECT_FALSE(left->has_value());
}

}  // namespace
}  // namespace tocsin
