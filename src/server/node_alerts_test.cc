#include "server/node_alerts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/placement.h"
#include "server/server_test_site.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Vanished(const std::vector<std::string>& members, const std::vector<std::string>& lost) {
  ClusterReport report;
  for (const std::string& id : members) {
    report.members.push_back({.member = {.id = id, .http = id.substr(0, 2) + ":7420", .resp = {}}, .slots = {}});
  }
  for (const std::string& id : lost) report.lost.push_back({.id = id, .http = id.substr(0, 2) + ":7420", .resp = {}});
  std::vector<std::string> ids;
  for (const NodeReading::Vanished& each : VanishedOf(report)) ids.push_back(each.id);
  return ids;
}

TEST(VanishedNodes, AreThoseThatHaveNotComeBack) {
  EXPECT_THAT(Vanished({"n1-00000001"}, {"n2-00000001"}), ElementsAre("n2-00000001"));
  EXPECT_THAT(Vanished({"n1-00000001", "n2-00000002"}, {"n2-00000001"}), IsEmpty()) << "it was started again";
  EXPECT_THAT(Vanished({"n1-00000001", "n3-00000002"}, {"n2-00000001"}), ElementsAre("n2-00000001"));
}

TEST(VanishedNodes, AreBackUnderTheirNameAtAnotherAddressIfTheyJoinedLater) {
  ClusterReport report;
  report.members.push_back({.member = {.id = "n2-2", .http = "new:7420", .resp = {}, .joined = FromMs(2000)}});
  report.lost.push_back({.id = "n2-1", .http = "old:7420", .resp = {}, .heard = FromMs(2000)});
  EXPECT_THAT(VanishedOf(report), IsEmpty());
  report.members[0].member.joined = FromMs(1999);
  EXPECT_EQ(VanishedOf(report).size(), 1U) << "another node of that name was there already";
}

TEST(WhoPosts, TheMemberThatJoinedFirstOfWhatIsNoTopics) {
  const AlertCondition silent{&RuleOf(AlertRuleId::kNodeSilent), {}, "gone", 0, 0, {}};
  ClusterReport report;
  report.members = {{.member = {.id = "a", .joined = FromMs(2)}, .self = true, .slots = {}},
                    {.member = {.id = "b", .joined = FromMs(1)}, .slots = {}}};
  EXPECT_FALSE(PostsHere(report, silent)) << "it came when the node was gone already";
  std::swap(report.members[0].self, report.members[1].self);
  EXPECT_TRUE(PostsHere(report, silent));
  report.members[1].member.joined = FromMs(2);
  EXPECT_FALSE(PostsHere(report, silent)) << "then by id";
  EXPECT_FALSE(PostsHere({}, silent));
}

TEST(WhoPosts, OneNodeOfThoseThatSeeTheSame) {
  const auto here = [](const ClusterReport& report, AlertRuleId rule, std::string topic = {}) {
    return PostsHere(report, {&RuleOf(rule), std::move(topic), {}, 0, 0, {}});
  };
  const uint32_t group = GroupOf("orders", 0, kGroups);
  ClusterReport first;
  ClusterReport second;
  first.members = {{.member = {.id = "a"}, .self = true, .slots = {}}, {.member = {.id = "b"}, .slots = {}}};
  second.members = {{.member = {.id = "a"}, .slots = {}}, {.member = {.id = "b"}, .self = true, .slots = {}}};
  for (uint32_t each = 0; each < kGroups; ++each) {
    first.groups.push_back(
        {.group = each, .mine = each != group, .owner = {}, .epoch = {}, .slots = {}, .next_due = {}});
    second.groups.push_back(
        {.group = each, .mine = each == group, .owner = {}, .epoch = {}, .slots = {}, .next_due = {}});
  }
  EXPECT_FALSE(here(first, AlertRuleId::kBacklog, "orders"));
  EXPECT_TRUE(here(second, AlertRuleId::kBacklog, "orders"));
  EXPECT_TRUE(here(first, AlertRuleId::kNodeSilent));
  EXPECT_FALSE(here(second, AlertRuleId::kNodeSilent));
  for (const ClusterReport& report : {first, second}) {
    EXPECT_TRUE(here(report, AlertRuleId::kLate, "orders")) << "each sees a part";
    EXPECT_TRUE(here(report, AlertRuleId::kDiskFull)) << "each has a disk";
  }
}

class NodeAlertsTest : public ServerTest {};

TEST_F(NodeAlertsTest, TheNodesThresholdsAreItsOptions) {
  const AlertSettings defaults = AlertSettingsOf(ConfigWith({}));
  EXPECT_EQ(defaults.topics.due_jobs, 100'000U);
  EXPECT_EQ(defaults.topics.late, 5s);
  EXPECT_EQ(defaults.node_silent, 1min);
  const AlertSettings none =
      AlertSettingsOf(ConfigWith({"--alerts-due-jobs=0", "--alerts-late=0s", "--alerts-stalled=0s",
                                  "--alerts-attempts=0", "--alerts-push-failures=0", "--alerts-dead-jobs=0",
                                  "--alerts-future-jobs=0", "--alerts-node-silent=0s", "--alerts-nearly-full=0"}));
  EXPECT_EQ(none.topics, AlertLimits{});
  EXPECT_EQ(none.node_silent, Millis(0));
  EXPECT_EQ(none.nearly_full_percent, 0U);
}

class AlertPosterTest : public ServerTest {
 protected:
  std::string Refusal(std::vector<std::string> arguments) {
    const auto made =
        AlertPoster::Make(ConfigWith(std::move(arguments)), loop_, clock_, metrics_, book_, "http://n1:1");
    return made ? "" : made.error().field + ": " + made.error().message;
  }
  RealClock clock_;
  net::AsioLoop loop_{clock_};
  metrics::Registry metrics_;
  AlertBook book_;
};

TEST_F(AlertPosterTest, TheOperatorsOwnUrlMayBeAnyAddress) {
  EXPECT_EQ(Refusal({"--alerts-webhook-url=http://127.0.0.1:1/alerts"}), "");
  EXPECT_EQ(Refusal({"--alerts-webhook-url=https://[fd00::1]/alerts"}), "");
}

TEST_F(AlertPosterTest, ErrorsNameTheOption) {
  EXPECT_THAT(Refusal({"--alerts-webhook-url=ftp://example.com/"}),
              HasSubstr("alerts.webhook_url: alerts.webhook_url"));
  EXPECT_THAT(Refusal({"--alerts-webhook-url=http://127.0.0.1:1/", "--alerts-webhook-secret=nobody"}),
              HasSubstr("alerts.webhook_secret: alerts.webhook_secret"));
}

}  // namespace
}  // namespace tocsin
