#include "server/ownership.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "base/clock.h"
#include "base/log.h"

namespace tocsin {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// A list of members that the test changes.
class TestCoordinator final : public Coordinator {
 public:
  void Join(Member self, std::move_only_function<void(const Members&)> changed) override {
    joined_as = std::move(self);
    changed_ = std::move(changed);
  }
  void Leave(Done<void> done) override { left = std::move(done); }
  void Refresh() override { ++refreshes; }
  Members Current() const override { return members; }
  CoordinatorHealth Health() const override { return {.kind = "test", .connected = true, .state = "connected"}; }

  void Say(std::vector<std::string> ids, bool joined = true) {
    members = {.members = {}, .joined = joined};
    for (std::string& id : ids) members.members.push_back({.id = std::move(id)});
    changed_(members);
  }
  void SayAll() { changed_(members); }

  Member joined_as;
  Members members;
  int refreshes = 0;
  Done<void> left;

 private:
  std::move_only_function<void(const Members&)> changed_;
};

/// Remembers what it was told to own.
class TestStore final : public SharedStore {
 public:
  TopicChanges TakeTopicChanges() override { return {}; }
  bool AdoptTopic(const HeardTopic&) override { return true; }
  void ForgetTopic(std::string_view) override {}
  void FinishAdvance() override {}
  void OnChanged(std::function<void()>) override {}
  void SetHungry(std::string_view, bool) override {}
  void OwnGroups(const std::vector<uint32_t>& owned) override { told.push_back(owned); }
  void OnGroupLost(std::function<void()> lost) override { lose_group = std::move(lost); }
  std::vector<GroupState> Groups() const override { return groups; }
  std::vector<StoreServer> Servers() const override { return servers; }

  std::vector<std::vector<uint32_t>> told;
  std::function<void()> lose_group;
  std::vector<GroupState> groups;
  std::vector<StoreServer> servers;
};

class OwnershipTest : public testing::Test {
 protected:
  void SetUp() override {
    SetLogLevel(LogLevel::kOff);
    auto coordinator = std::make_unique<TestCoordinator>();
    coordinator_ = coordinator.get();
    ownership_ =
        std::make_shared<Ownership>("test", kGroups, loop_, std::vector<OwnedShard>{{&loop_, &even_}, {&loop_, &odd_}},
                                    std::move(coordinator), Member{.id = "me"}, metrics_);
    ownership_->Start();
  }
  /// Runs what waits, and never waits itself.
  void Run() { loop_.io().poll(); }
  void Say(std::vector<std::string> ids, bool joined = true) {
    coordinator_->Say(std::move(ids), joined);
    Run();
  }
  size_t Owned() const { return even_.told.back().size() + odd_.told.back().size(); }

  RealClock clock_;
  net::AsioLoop loop_{clock_};
  metrics::Registry metrics_;
  TestStore even_;
  TestStore odd_;
  TestCoordinator* coordinator_ = nullptr;
  std::shared_ptr<Ownership> ownership_;
};

TEST_F(OwnershipTest, ANodeAloneOwnsEveryGroupOnTheShardThatServesIt) {
  EXPECT_EQ(coordinator_->joined_as.id, "me");
  Say({"me"});
  EXPECT_EQ(Owned(), kGroups);
  for (const uint32_t group : even_.told.back()) EXPECT_EQ(group % 2, 0);
  for (const uint32_t group : odd_.told.back()) EXPECT_EQ(group % 2, 1);
  EXPECT_THAT(metrics_.RenderPrometheus(), HasSubstr(fmt::format("tocsin_owned_groups {}\n", kGroups)));
  EXPECT_THAT(metrics_.RenderPrometheus(), HasSubstr(fmt::format("tocsin_groups {}\n", kGroups)));
}

TEST_F(OwnershipTest, MembersShareTheGroupsAndTakeThemBack) {
  Say({"me", "other"});
  const size_t shared = Owned();
  EXPECT_GT(shared, 0);
  EXPECT_LT(shared, kGroups);
  Say({"me"});
  EXPECT_EQ(Owned(), kGroups);
  EXPECT_THAT(metrics_.RenderPrometheus(), HasSubstr(fmt::format("tocsin_takeovers_total {}\n", kGroups)));
}

TEST_F(OwnershipTest, WhileItsRegistrationIsLostANodeKeepsWhatItHasAndTakesNothing) {
  Say({"me", "other"});
  const size_t told = even_.told.size();
  const auto groups = even_.told.back();
  Say({"other"}, false);
  EXPECT_EQ(even_.told.size(), told) << "nothing new is said to the stores";
  EXPECT_THAT(metrics_.RenderPrometheus(), HasSubstr("tocsin_cluster_members 0\n"));
  Say({"me", "other"});
  EXPECT_EQ(even_.told.back(), groups);
  EXPECT_THAT(even_.told[even_.told.size() - 2], IsEmpty()) << "others may have had them: it takes all of them again";
}

TEST_F(OwnershipTest, NodesThatComeAndGoAndWhatThatChangesAreLogged) {
  SetLogLevel(LogLevel::kInfo);
  const auto logged = [this](std::vector<std::string> ids, std::vector<std::string> lost = {}) {
    coordinator_->members = {.members = {}, .joined = true};
    for (std::string& id : ids) coordinator_->members.members.push_back({.id = std::move(id), .http = "h:1"});
    for (std::string& id : lost) coordinator_->members.lost.push_back({.id = std::move(id)});
    testing::internal::CaptureStderr();
    coordinator_->SayAll();
    Run();
    return testing::internal::GetCapturedStderr();
  };
  const std::string all = fmt::format("groups={0} owned={0}", kGroups);
  EXPECT_THAT(logged({"me", "other"}), testing::Not(HasSubstr("node_joined"))) << "it was there before";
  EXPECT_THAT(logged({"me", "other"}), IsEmpty());
  EXPECT_THAT(logged({"me"}), testing::AllOf(HasSubstr(" info node_left node=other how=left\n"),
                                             HasSubstr(" info rebalance nodes=1 " + all + " gained=")));
  EXPECT_THAT(logged({"me", "third"}), HasSubstr(" info node_joined node=third http=h:1 resp="));
  EXPECT_THAT(logged({"me"}, {"third"}), HasSubstr(" warning node_left node=third how=vanished\n"));
  SetLogLevel(LogLevel::kOff);
}

TEST_F(OwnershipTest, AGroupThatWasTakenMakesItReadTheMembersOnce) {
  Say({"me"});
  for (int i = 0; i < 3; ++i) odd_.lose_group();
  Run();
  EXPECT_EQ(coordinator_->refreshes, 1);
  Say({"me"});
  odd_.lose_group();
  Run();
  EXPECT_EQ(coordinator_->refreshes, 2) << "again after the answer";
}

TEST_F(OwnershipTest, ANodeThatLeavesOwnsNothingAndWaitsForTheOthersToSeeIt) {
  Say({"me"});
  int left = 0;
  ownership_->Leave([&] { ++left; });
  Run();
  EXPECT_EQ(Owned(), 0);
  EXPECT_EQ(left, 0);
  coordinator_->Say({"me"});
  Run();
  EXPECT_EQ(Owned(), 0) << "whatever the coordinator says now";
  coordinator_->left({});
  coordinator_->left({});
  EXPECT_EQ(left, 1);
}

TEST_F(OwnershipTest, ALeaveEndsWithoutTheCoordinator) {
  bool left = false;
  ownership_->Leave([&] { left = true; });
  const auto begin = std::chrono::steady_clock::now();
  while (!left) loop_.io().run_one();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10 * Ownership::kLeaveTime);
}

TEST_F(OwnershipTest, AReportHasAllShardsAndTheWorstOfEachServer) {
  Say({"me", "other"});
  even_.groups = {{.group = 2, .mine = true, .owner = "me", .epoch = 7, .slots = 3}};
  odd_.groups = {{.group = 1, .mine = false, .owner = "other", .epoch = 8, .slots = 5}};
  even_.servers = {{.endpoint = "a:1", .connected = true, .state = "connected", .round_trip = Millis(1)}};
  odd_.servers = {{.endpoint = "a:1", .connected = false, .state = "refused", .round_trip = Millis(9)}};
  std::optional<ClusterReport> report;
  ownership_->Describe(loop_, [&](Result<ClusterReport> described) { report = *std::move(described); });
  while (!report) Run();
  EXPECT_EQ(report->store, "test");
  EXPECT_EQ(report->node, "me");
  ASSERT_EQ(report->groups.size(), 2);
  EXPECT_EQ(report->groups[0].group, 1) << "in their order";
  ASSERT_EQ(report->servers.size(), 1);
  EXPECT_FALSE(report->servers[0].connected);
  EXPECT_EQ(report->servers[0].state, "refused");
  EXPECT_EQ(report->servers[0].round_trip, Millis(9));
  ASSERT_EQ(report->members.size(), 2);
  EXPECT_TRUE(report->members[0].self);
  EXPECT_EQ(report->members[0].groups, 1);
  EXPECT_EQ(report->members[0].slots, 3);
  EXPECT_EQ(report->members[1].slots, 5);
}

}  // namespace
}  // namespace tocsin
