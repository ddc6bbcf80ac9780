#include "server/alert_body.h"

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

namespace json = boost::json;

constexpr std::string_view kUrl = "http://node-1:7420";

Alert AlertOf(AlertRuleId rule, std::string topic, AlertState state) {
  return {.condition = {&RuleOf(rule), std::move(topic), {}, 12, 10, {}},
          .state = state,
          .starts_at = FromMs(1'800'000'000'250),
          .ends_at = FromMs(1'800'000'060'000)};
}

json::object Body(const AlertOrigin& origin, const std::vector<Alert>& alerts) {
  return json::parse(AlertBody(origin, alerts, kUrl)).as_object();
}

std::vector<std::string> Names(const json::object& object) {
  std::vector<std::string> names;
  for (const auto& member : object) names.emplace_back(member.key());
  return names;
}

std::string Text(const json::object& object) { return json::serialize(object); }

const AlertOrigin kAlone{.instance = "n1", .cluster = {}};

TEST(AlertBody, HasTheFieldsOfVersion4) {
  const json::object body = Body(kAlone, {AlertOf(AlertRuleId::kDeadLetters, "orders", AlertState::kFiring)});
  EXPECT_THAT(Names(body), ElementsAre("version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels",
                                       "commonLabels", "commonAnnotations", "externalURL", "alerts"));
  EXPECT_EQ(body.at("version"), "4");
  EXPECT_EQ(body.at("truncatedAlerts"), 0);
  EXPECT_EQ(body.at("status"), "firing");
  EXPECT_EQ(body.at("receiver"), "tocsin");
  EXPECT_EQ(body.at("groupKey"), "{}/{instance=\"n1\"}:{instance=\"n1\"}");
  EXPECT_EQ(Text(body.at("groupLabels").as_object()), R"({"instance":"n1"})");
  EXPECT_EQ(body.at("externalURL").as_string(), kUrl);
  const json::object& alert = body.at("alerts").at(0).as_object();
  EXPECT_THAT(Names(alert),
              ElementsAre("status", "labels", "annotations", "startsAt", "endsAt", "generatorURL", "fingerprint"));
  EXPECT_EQ(alert.at("status"), "firing");
  EXPECT_EQ(Text(alert.at("labels").as_object()),
            R"({"alertname":"TocsinDeadLetters","instance":"n1","severity":"warning","topic":"orders"})");
  EXPECT_EQ(alert.at("annotations").at("summary"),
            "topic orders has 12 dead letters, more than 10: tocsin dead list orders");
  EXPECT_EQ(alert.at("startsAt"), "2027-01-15T08:00:00.250Z");
  EXPECT_EQ(alert.at("endsAt"), "0001-01-01T00:00:00Z");
  EXPECT_EQ(alert.at("generatorURL"), "http://node-1:7420/v1/alerts");
  EXPECT_EQ(alert.at("fingerprint").as_string().size(), 16U);
}

TEST(AlertBody, IsResolvedWhenAllAre) {
  const Alert over = AlertOf(AlertRuleId::kDeadLetters, "orders", AlertState::kResolved);
  const Alert fires = AlertOf(AlertRuleId::kDeadLetters, "mail", AlertState::kFiring);
  const json::object resolved = Body(kAlone, {over});
  EXPECT_EQ(resolved.at("status"), "resolved");
  EXPECT_EQ(resolved.at("alerts").at(0).at("status"), "resolved");
  EXPECT_EQ(resolved.at("alerts").at(0).at("endsAt"), "2027-01-15T08:01:00.000Z");
  const json::object both = Body(kAlone, {over, fires});
  EXPECT_EQ(both.at("status"), "firing");
  EXPECT_EQ(both.at("alerts").as_array().size(), 2U);
}

TEST(AlertBody, SaysWhatAllAlertsHaveInCommon) {
  const json::object body =
      Body({.instance = "n1", .cluster = "shop"}, {AlertOf(AlertRuleId::kDeadLetters, "orders", AlertState::kFiring),
                                                   AlertOf(AlertRuleId::kLate, "orders", AlertState::kFiring)});
  EXPECT_EQ(Text(body.at("commonLabels").as_object()), R"({"cluster":"shop","severity":"warning","topic":"orders"})");
  EXPECT_EQ(Text(body.at("commonAnnotations").as_object()), "{}");
  EXPECT_EQ(Text(body.at("groupLabels").as_object()), R"({"cluster":"shop"})");
}

TEST(AlertBody, TheSameAlertHasTheSameFingerprintWhenItIsResolved) {
  const auto fingerprint = [](AlertState state) {
    const json::object body = Body(kAlone, {AlertOf(AlertRuleId::kDeadLetters, "orders", state)});
    return std::string(body.at("alerts").at(0).at("fingerprint").as_string());
  };
  EXPECT_EQ(fingerprint(AlertState::kFiring), fingerprint(AlertState::kResolved));
}

TEST(AlertBody, ATopicMayHaveAnyName) {
  const json::object body = Body(kAlone, {AlertOf(AlertRuleId::kDeadLetters, "a\"\\é", AlertState::kFiring)});
  EXPECT_EQ(body.at("alerts").at(0).at("labels").at("topic"), "a\"\\é");
}

}  // namespace
}  // namespace tocsin
