#include "core/monitor.h"

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/service.h"
#include "core/test_node.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class MonitorTest : public testing::Test {
 protected:
  MonitorTest() { node.service->Watch(worker); }

  /// Time passes by the second, and the monitor has looked after each.
  void Pass(std::chrono::seconds by) {
    for (; by > 0s; by -= 1s) {
      node.Pass(1s);
      std::promise<void> looked;
      worker.Run(node.at(0), [&looked] { looked.set_value(); }, [](const Status&) {});
      looked.get_future().wait();
      node.Run();
    }
  }
  std::unique_ptr<EventHub::Listener> Listen(EventInterest interest) {
    return *node.service->events().Listen(std::move(interest), {}, [] {});
  }
  void Submit(const std::string& topic, size_t jobs = 1) {
    ASSERT_TRUE(node.Submit(topic, std::vector<NewJob>(jobs, {.delay = 1h, .payload = "x"})));
  }
  static std::vector<EventPtr> Of(EventKind kind, EventHub::Listener& listener) {
    std::vector<EventPtr> events;
    for (auto taken = listener.Take(100); !taken.events.empty(); taken = listener.Take(100)) {
      std::ranges::copy_if(taken.events, std::back_inserter(events), [kind](const auto& e) { return e->kind == kind; });
    }
    return events;
  }
  /// The topics of all events that were told since the last call.
  static std::vector<std::string> TopicsOf(EventHub::Listener& listener) {
    std::vector<std::string> names;
    for (const EventPtr& event : Of(EventKind::kTopic, listener)) {
      for (const TopicActivity* const each : listener.interest().Of(std::get<TopicsEvent>(event->data))) {
        names.push_back(each->topic);
      }
    }
    return names;
  }
  Result<HistoryReport> History(const std::string& topic = {}) {
    TestNode::Reply<HistoryReport> reply;
    node.service->History(node.at(0), topic, reply.Catch());
    node.Run();
    return std::move(*reply.got);
  }

  TestNode node{2};
  Worker worker{"monitor"};
};

TEST_F(MonitorTest, FiguresAreToldEachSecondWhileSomebodyListens) {
  Submit("t");
  Pass(3s);
  const auto listener = Listen({});
  EXPECT_EQ(listener->start(), 1U) << "before, the topic was created, and nothing else was told";
  Pass(2s);
  Submit("t", 3);
  Pass(3s);
  const auto told = Of(EventKind::kFigures, *listener);
  ASSERT_GE(told.size(), 4U);
  uint64_t added = 0;
  for (const EventPtr& event : told) added += std::get<FiguresEvent>(event->data).activity.added[ColumnOf("accepted")];
  EXPECT_EQ(added, 3U) << "what happened before it listened is not told";
  const auto& last = std::get<FiguresEvent>(told.back()->data);
  EXPECT_EQ(last.activity.values[ColumnOf("scheduled")], 4U);
  EXPECT_EQ(last.topics, 1U);
}

TEST_F(MonitorTest, EachListenerHearsOfItsTopicsThatHaveChanged) {
  for (const char* topic : {"a-1", "a-2", "b-1", "b-2"}) Submit(topic);
  const auto all = Listen({});
  const auto prefixed = Listen({.prefix = "a-", .node = false});
  const auto named = Listen({.topics = {"a-2", "b-2", "none"}});
  Pass(2s);
  for (auto* const each : {all.get(), prefixed.get(), named.get()}) (void)TopicsOf(*each);
  Submit("a-1");
  Submit("a-2", 3);
  Submit("b-2", 2);
  Pass(2s);
  EXPECT_THAT(TopicsOf(*all), ElementsAre("a-2", "b-2", "a-1")) << "the busiest first";
  EXPECT_THAT(TopicsOf(*prefixed), ElementsAre("a-2", "a-1"));
  EXPECT_THAT(TopicsOf(*named), ElementsAre("a-2", "b-2"));
  Pass(2s);
  EXPECT_THAT(TopicsOf(*all), IsEmpty()) << "nothing changed";
}

TEST_F(MonitorTest, AnEventHasTheBusiestTopicsAndCountsTheOthers) {
  const auto all = Listen({});
  Pass(2s);
  for (size_t i = 0; i < EventHub::kBusiest + 20; ++i) Submit(fmt::format("t{:03}", i), i == 60 ? 5 : 1);
  Pass(2s);
  const auto told = Of(EventKind::kTopic, *all);
  ASSERT_THAT(told, SizeIs(1));
  const auto& event = std::get<TopicsEvent>(told[0]->data);
  EXPECT_EQ(event.busiest.at("").changed, EventHub::kBusiest + 20);
  EXPECT_THAT(event.topics, SizeIs(EventHub::kBusiest));
  EXPECT_EQ(all->interest().Of(event).front()->topic, "t060");
}

TEST_F(MonitorTest, TheHistoryGrowsByAPointForEachStep) {
  Submit("t", 4);
  Pass(15s);
  ASSERT_TRUE(History("t"));
  const size_t points = History()->points.size();
  Submit("t", 30);
  Pass(20s);
  const auto of_node = History();
  ASSERT_THAT(of_node->points, SizeIs(points + 2));
  double accepted = 0;
  for (const HistoryPoint& point : of_node->points) accepted += point.rates[0] * 10;
  EXPECT_NEAR(accepted, 30, 0.1) << "the others were there at the first look";
  EXPECT_EQ(of_node->points.back().gauges[0], 34U);
  for (size_t i = 1; i < of_node->points.size(); ++i) EXPECT_LT(of_node->points[i - 1].at, of_node->points[i].at);
  EXPECT_EQ(History("t")->points.back().gauges[0], 34U);
}

TEST_F(MonitorTest, ATopicThatIsMadeAgainHasANewHistory) {
  Submit("t");
  (void)History("t");
  Pass(25s);
  EXPECT_FALSE(History("t")->points.empty());
  TestNode::Reply<void> dropped;
  node.service->DropTopic(node.at(0), "t", dropped.Catch());
  node.Run();
  EXPECT_EQ(History("t").error().code, Code::kTopicNotFound);
  Pass(11s);
  Submit("t");
  EXPECT_THAT(History("t")->points, IsEmpty());
}

TEST_F(MonitorTest, WhileTheClockStandsTheHistoryDoesNotGrow) {
  Submit("t");
  Pass(25s);
  const size_t points = History()->points.size();
  for (int i = 0; i < 30; ++i) {
    node.clock.Step(-1s);
    Pass(1s);
  }
  EXPECT_THAT(History()->points, SizeIs(points + 1)) << "for the time that passed before";
  Pass(20s);
  const auto history = History();
  EXPECT_GT(history->points.size(), points);
  for (size_t i = 1; i < history->points.size(); ++i) EXPECT_LT(history->points[i - 1].at, history->points[i].at);
}

}  // namespace
}  // namespace tocsin
