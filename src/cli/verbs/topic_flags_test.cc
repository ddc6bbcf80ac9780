#include "cli/verbs/topic_flags.h"

#include <set>

#include <gmock/gmock.h>

#include "cli/commands.h"
#include "model/delivery.h"
#include "model/topic.h"

namespace tocsin::cli {
namespace {

const Flag& FlagFor(std::string_view field) { return std::ranges::find(TopicFlags(), field, &TopicFlag::field)->flag; }

TEST(TopicFlags, EverySettingOfTopicsAndSinksIsAFlag) {
  EXPECT_EQ(TopicFlags().size(), TopicSettings().size() + 1 + DeliverySettingNames().size());
  std::set<std::string_view> names;
  for (const Flag& flag : GlobalFlags()) names.insert(flag.name);
  for (const TopicFlag& each : TopicFlags()) {
    EXPECT_TRUE(names.insert(each.flag.name).second) << each.flag.name << " is taken";
    EXPECT_THAT(each.flag.name, testing::Not(testing::HasSubstr("_")));
    EXPECT_FALSE(each.flag.doc.empty());
    EXPECT_TRUE(each.flag.fallback.empty()) << "a flag with one would always be sent";
  }
}

TEST(TopicFlags, TheirKindsFollowTheTables) {
  EXPECT_EQ(FlagFor("slots").kind, Kind::kNumber);
  EXPECT_EQ(FlagFor("capacity_bytes").kind, Kind::kSize);
  EXPECT_EQ(FlagFor("lease_ms").kind, Kind::kDuration);
  EXPECT_EQ(FlagFor("paused").choices, (std::vector<std::string_view>{"yes", "no"}));
  EXPECT_EQ(FlagFor("url").kind, Kind::kText);
  EXPECT_EQ(FlagFor("in_flight").kind, Kind::kNumber);
  EXPECT_EQ(FlagFor("in_flight").name, "in-flight");
  EXPECT_EQ(FlagFor("timeout_ms").kind, Kind::kDuration);
  EXPECT_EQ(FlagFor("timeout_ms").name, "sink-timeout") << "every command takes --timeout";
  EXPECT_EQ(FlagFor("retry_4xx").choices, (std::vector<std::string_view>{"yes", "no"}));
  EXPECT_THAT(FlagFor("sink").choices, testing::ElementsAre("pull", "webhook", "kafka", "rabbitmq"));
}

TEST(TopicFlags, ANameThatIsNoFlagStaysAsItIs) {
  EXPECT_EQ(FlagNameOf("in_flight"), "in-flight");
  EXPECT_EQ(FlagNameOf("backoff_base_ms"), "backoff");
  EXPECT_EQ(FlagNameOf("of_a_later_server"), "of_a_later_server");
}

}  // namespace
}  // namespace tocsin::cli
