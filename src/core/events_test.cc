#include "core/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class EventHubTest : public testing::Test {
 protected:
  using Begin = EventHub::Begin;
  using ListenerPtr = std::unique_ptr<EventHub::Listener>;

  ListenerPtr Listen(EventInterest interest = {}, std::string_view last_id = {}) {
    auto listener = hub.Listen(std::move(interest), last_id, [this] { ++woken; });
    EXPECT_TRUE(listener) << listener.error().message;
    return listener ? std::move(*listener) : nullptr;
  }
  Error Refusal(EventInterest interest) {
    const auto listener = hub.Listen(std::move(interest), {}, [] {});
    EXPECT_FALSE(listener);
    return listener ? Error{} : listener.error();
  }
  void PublishDropped(const std::string& topic) { hub.Publish(EventKind::kTopicDropped, topic, std::monostate()); }
  /// Of `bytes` at least.
  void PublishLog(size_t bytes, std::string topic = {}) {
    hub.Publish(EventKind::kLog, std::move(topic), EventFields{{"text", std::string(bytes, 'x')}});
  }
  static std::vector<std::string> TopicsOf(const EventHub::Listener::Taken& taken) {
    std::vector<std::string> topics;
    for (const EventPtr& event : taken.events) topics.push_back(event->topic);
    return topics;
  }

  VirtualClock clock;
  EventHub hub{clock, 10};
  int woken = 0;
};

TEST_F(EventHubTest, AListenerIsWokenOnceAndTakesWhatHappened) {
  const auto listener = Listen();
  PublishDropped("a");
  PublishDropped("b");
  EXPECT_EQ(woken, 1) << "it has not looked since";
  EXPECT_THAT(TopicsOf(listener->Take(1)), ElementsAre("a"));
  EXPECT_THAT(TopicsOf(listener->Take(9)), ElementsAre("b"));
  PublishDropped("c");
  EXPECT_EQ(woken, 1) << "it has not been told that there is no more";
  EXPECT_THAT(TopicsOf(listener->Take(9)), ElementsAre("c"));
  EXPECT_THAT(listener->Take(9).events, IsEmpty());
  PublishDropped("d");
  EXPECT_EQ(woken, 2);
}

TEST_F(EventHubTest, AListenerHearsOfWhatItMaySeeAndWants) {
  const auto prefixed = Listen({.prefix = "a-", .node = false});
  const auto named = Listen({.kinds = 1U << static_cast<unsigned>(EventKind::kTopicDropped), .topics = {"a-1", "b"}});
  for (const char* topic : {"a-1", "a-2", "b"}) PublishDropped(topic);
  PublishLog(1);
  PublishLog(1, "a-1");
  EXPECT_THAT(TopicsOf(prefixed->Take(9)), ElementsAre("a-1", "a-2", "a-1"));
  EXPECT_THAT(TopicsOf(named->Take(9)), ElementsAre("a-1", "b"));
}

TEST_F(EventHubTest, AListenerWhoComesBackGoesOnWhereItWas) {
  PublishDropped("a");
  const auto before = Listen();
  EXPECT_EQ(before->begin(), Begin::kStart);
  PublishDropped("b");
  const std::string seen = hub.IdOf(before->Take(9).number);
  PublishDropped("c");
  const auto after = Listen({}, seen);
  EXPECT_EQ(after->begin(), Begin::kGoesOn);
  EXPECT_THAT(TopicsOf(after->Take(9)), ElementsAre("c"));
  for (const std::string& unknown : {seen + "0", std::string("ffffffff-1"), seen.substr(0, 9), seen + "x"}) {
    if (unknown.starts_with("ffffffff") && seen.starts_with("ffffffff")) continue;
    const auto lost = Listen({}, unknown);
    EXPECT_EQ(lost->begin(), Begin::kUnknown) << unknown;
    EXPECT_THAT(lost->Take(9).events, IsEmpty());
  }
}

TEST_F(EventHubTest, OldEventsAreForgotten) {
  const auto slow = Listen();
  PublishDropped("first");
  const std::string seen = hub.IdOf(slow->start());
  for (size_t i = 0; i < EventHub::kEventsMax; ++i) PublishDropped("t");
  EXPECT_EQ(Listen({}, seen)->begin(), Begin::kTooOld);
  const auto taken = slow->Take(9);
  EXPECT_TRUE(taken.overtaken);
  EXPECT_THAT(taken.events, IsEmpty());
  PublishDropped("next");
  EXPECT_THAT(TopicsOf(slow->Take(9)), ElementsAre("next"));
}

TEST_F(EventHubTest, EventsAreKeptByTheirBytesToo) {
  const auto slow = Listen();
  for (int i = 0; i < 10; ++i) PublishLog(EventHub::kBytesMax / 4);
  EXPECT_TRUE(slow->Take(9).overtaken);
  const std::string now = hub.IdOf(slow->Take(9).number);
  for (int i = 0; i < 3; ++i) PublishLog(EventHub::kBytesMax / 4);
  EXPECT_THAT(Listen({}, now)->Take(9).events, SizeIs(3));
  PublishLog(2 * EventHub::kBytesMax);
  EXPECT_EQ(Listen({}, now)->begin(), Begin::kTooOld) << "one that is larger than all is kept alone";
}

TEST_F(EventHubTest, ALongWayThroughUnwantedEventsLosesNothing) {
  const auto listener = Listen({.topics = {"wanted"}});
  for (int i = 0; i < 200; ++i) PublishDropped(i % 50 == 49 ? "wanted" : "other");
  EXPECT_THAT(listener->Take(3).events, SizeIs(3));
  EXPECT_THAT(listener->Take(3).events, SizeIs(1));
  const int before = woken;
  EXPECT_THAT(listener->Take(3).events, IsEmpty());
  PublishDropped("other");
  EXPECT_EQ(woken, before);
  PublishDropped("wanted");
  EXPECT_EQ(woken, before + 1);
}

TEST_F(EventHubTest, OneAccessTokenLeavesStreamsToOthers) {
  std::vector<ListenerPtr> open;
  for (int i = 0; i < 5; ++i) open.push_back(Listen({.token = "greedy"}));
  const Error refusal = Refusal({.token = "greedy"});
  EXPECT_EQ(refusal.code, Code::kOverloaded);
  EXPECT_THAT(refusal.message, HasSubstr("5 event streams open"));
  for (int i = 0; i < 2; ++i) open.push_back(Listen({.token = "modest"}));
  EXPECT_EQ(Refusal({.token = "greedy"}).code, Code::kOverloaded);
  open.push_back(Listen({.token = "late"}));
  open.erase(open.begin(), open.begin() + 5);
  EXPECT_NE(Listen({.token = "greedy"}), nullptr);
}

TEST_F(EventHubTest, WithoutAccessTokensOnlyAllStreamsTogetherAreLimited) {
  std::vector<ListenerPtr> open;
  for (int i = 0; i < 10; ++i) open.push_back(Listen());
  EXPECT_THAT(Refusal({}).message, HasSubstr("limits.event_streams"));
  EXPECT_EQ(hub.listeners(), 10U);
  open.pop_back();
  EXPECT_NE(Listen(), nullptr);
}

TEST_F(EventHubTest, TopicsThatAreNamedAreLimited) {
  const auto names = [](size_t from, size_t count) {
    std::vector<std::string> topics;
    for (size_t i = from; i < from + count; ++i) topics.push_back(fmt::format("{:06}", i));
    return topics;
  };
  auto all = Listen({.topics = names(0, EventHub::kNamesMax)});
  EXPECT_THAT(Refusal({.topics = names(EventHub::kNamesMax, 1)}).message, HasSubstr("name fewer"));
  EXPECT_NE(Listen({.topics = names(10, 100)}), nullptr) << "somebody names them already";
  all.reset();
  EXPECT_THAT(hub.WantedFigures().names, IsEmpty());
  const auto greedy = Listen({.topics = names(0, EventHub::kNamesMax / 2), .token = "greedy"});
  EXPECT_THAT(Refusal({.topics = names(0, 1), .token = "greedy"}).message, HasSubstr("name fewer"));
  EXPECT_NE(Listen({.topics = names(0, 100), .token = "modest"}), nullptr);
}

TEST_F(EventHubTest, ItKnowsWhatFiguresAreWanted) {
  EXPECT_FALSE(hub.WantedFigures().figures || hub.WantedFigures().topics);
  const auto log = Listen({.kinds = 1U << static_cast<unsigned>(EventKind::kLog)});
  EXPECT_FALSE(hub.WantedFigures().figures || hub.WantedFigures().topics);
  const auto named = Listen({.topics = {"a-1", "b-1"}, .prefix = "a-", .node = false});
  EXPECT_FALSE(hub.WantedFigures().figures) << "these are of the whole node";
  EXPECT_THAT(hub.WantedFigures().names, ElementsAre("a-1"));
  auto unnamed = Listen();
  EXPECT_TRUE(hub.WantedFigures().figures);
  EXPECT_THAT(hub.WantedFigures().prefixes, ElementsAre(""));
  EXPECT_EQ(hub.WantedFigures().Busiest(), EventHub::kBusiest);
  unnamed.reset();
  EXPECT_FALSE(hub.WantedFigures().figures);
  EventHub::Wanted many;
  many.prefixes.resize(200);
  EXPECT_LE(many.prefixes.size() * many.Busiest(), EventHub::kUnnamedMax);
}

TEST(EventInterest, TakesItsPartOfTheFiguresOfTopics) {
  TopicsEvent event;
  for (const char* topic : {"a-1", "a-2", "a-3", "b-1"}) event.topics.push_back({.topic = topic});
  event.busiest["a-"] = {.changed = 3, .places = {2, 0}};
  const auto of = [&event](EventInterest interest) {
    std::vector<std::string> names;
    for (const TopicActivity* const each : interest.Of(event)) names.push_back(each->topic);
    return names;
  };
  EXPECT_THAT(of({.prefix = "a-"}), ElementsAre("a-3", "a-1"));
  EXPECT_THAT(of({.prefix = "c-"}), IsEmpty());
  EXPECT_THAT(of({.topics = {"a-2", "a-9", "b-1"}}), ElementsAre("a-2", "b-1"));
  EXPECT_THAT(of({.topics = {"a-2", "b-1"}, .prefix = "a-"}), ElementsAre("a-2"));
  EXPECT_EQ(event.Find("a-"), nullptr);
  EXPECT_EQ(event.Find("c"), nullptr);
}

}  // namespace
}  // namespace tocsin
