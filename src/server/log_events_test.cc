#include "server/log_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "core/alerts.h"

namespace tocsin {
namespace {

using testing::ElementsAre;

class LogEventsTest : public testing::Test {
 protected:
  LogEventsTest() {
    WatchLog([this](std::string_view event, LogFields fields) { PublishLogEvent(hub_, event, fields); });
  }
  ~LogEventsTest() override { WatchLog(nullptr); }

  /// What was published since the last call: the kind, the topic, and names with texts.
  std::vector<std::string> Told() {
    std::vector<std::string> told;
    for (const EventPtr& event : listener_->Take(100).events) {
      std::string line = fmt::format("{} '{}'", kEventKindNames[static_cast<size_t>(event->kind)], event->topic);
      for (const EventField& field : std::get<EventFields>(event->data)) {
        if (const auto* const text = std::get_if<std::string>(&field.value)) {
          line += fmt::format(" {}={}", field.name, *text);
        }
        if (const auto* const number = std::get_if<int64_t>(&field.value)) {
          line += fmt::format(" {}={}", field.name, *number);
        }
      }
      told.push_back(std::move(line));
    }
    return told;
  }

  VirtualClock clock_;
  EventHub hub_{clock_, 1};
  std::unique_ptr<EventHub::Listener> listener_ = *hub_.Listen({}, {}, [] {});
};

TEST_F(LogEventsTest, AnAlertThatFiresAndEndsIsAnEventOfItsOwn) {
  AlertBook book;
  const AlertRule& rule = kAlertRules[0];
  const AlertCondition condition{.rule = &rule, .topic = "t", .node = {}, .value = 2, .threshold = 1, .detail = {}};
  book.Update({condition}, clock_.Now(), Millis(0));
  const auto fired = Told();
  ASSERT_EQ(fired.size(), 1U);
  EXPECT_THAT(fired[0], testing::StartsWith(fmt::format("alert 't' state=firing rule={} topic=t summary=", rule.name)));
  book.Update({}, clock_.Now(), Millis(0));
  EXPECT_THAT(Told(), ElementsAre(fmt::format("alert 't' state=resolved rule={} topic=t lasted_ms=0", rule.name)));
}

TEST_F(LogEventsTest, NodesAndTheirGroups) {
  const LogField joined[] = {{"node", "n-1"}, {"http", "h"}, {"resp", "r"}};
  LogEvent(LogLevel::kInfo, "node_joined", joined);
  const LogField left[] = {{"node", "n-1"}, {"how", "vanished"}};
  LogEvent(LogLevel::kWarn, "node_left", left);
  const LogField divided[] = {{"nodes", int64_t{2}}, {"groups", int64_t{64}}, {"owned", int64_t{31}}};
  LogEvent(LogLevel::kInfo, "rebalance", divided);
  EXPECT_THAT(Told(),
              ElementsAre("node '' what=joined node=n-1 http=h resp=r", "node '' what=left node=n-1 how=vanished",
                          "node '' what=rebalance nodes=2 groups=64 owned=31"));
}

TEST_F(LogEventsTest, ConditionsThatBeginAndEnd) {
  const LogField of_topic[] = {{"state", "begin"}, {"topic", "t"}};
  LogEvent(LogLevel::kWarn, "push_failing", of_topic);
  const LogField of_node[] = {{"state", "end"}, {"times", int64_t{2}}};
  LogEvent(LogLevel::kWarn, "disk_full", of_node);
  const LogField other[] = {{"text", "x"}};
  LogEvent(LogLevel::kWarn, "login_refused", other);
  EXPECT_THAT(Told(), ElementsAre("log 't' event=push_failing state=begin topic=t",
                                  "log '' event=disk_full state=end times=2"));
}

}  // namespace
}  // namespace tocsin
