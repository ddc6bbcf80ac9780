// What the broker answers, and what becomes of jobs then.
#include <set>

#include "sinks/rabbitmq/rabbitmq_test_site.h"

namespace tocsin::rabbitmq {
namespace {

using testing::HasSubstr;
using testing::Not;

using PublisherTest = BrokerTest;
using Settings = std::map<std::string, std::string, std::less<>>;

TEST_F(PublisherTest, WhatCannotBeRoutedIsRefusedWithTheBrokersWordsAndOnlyThat) {
  receiver_->MakeQueue("even");
  Site site(OptionsFor(*server_));
  Site::Topic& orders = site.Open("orders", {{"routing_key", "{key}"}});
  constexpr size_t kJobs = 2'000;
  orders.Deliver(kJobs, [](size_t i, JobView& job) { job.key = i % 2 == 0 ? "even" : "nowhere"; });
  ASSERT_TRUE(orders.Await());
  for (size_t i = 0; i < kJobs; ++i) {
    const Delivered& delivered = orders.sent()[i].delivered;
    ASSERT_EQ(delivered.outcome, i % 2 == 0 ? DeliverOutcome::kConfirmed : DeliverOutcome::kRefused) << i;
  }
  EXPECT_EQ(orders.last().reason, "RabbitMQ could not route it: 312 NO_ROUTE, exchange \"\", routing key \"nowhere\"");
  EXPECT_EQ(receiver_->Take("even").size(), kJobs / 2);
}

TEST_F(PublisherTest, WhatAmqpCannotCarryIsRefusedAndHarmsNoOther) {
  receiver_->MakeQueue("ready_orders");
  Site site(OptionsFor(*server_));
  Site::Topic& orders = site.Open("orders");
  const std::string name(256, 'n');
  const std::string large(200 << 10, 'h');
  orders.Deliver(5, [&](size_t i, JobView& job) {
    if (i == 1) job.headers = {{name, "x"}};
    if (i == 2) job.headers = {{"large", large}};
    if (i == 3) job.headers = {{"CC", "x"}};  // RabbitMQ closes the channel over it
  });
  ASSERT_TRUE(orders.Await());
  EXPECT_EQ(orders.Count(DeliverOutcome::kConfirmed), 2) << orders.last().reason;
  EXPECT_EQ(orders.Count(DeliverOutcome::kRefused), 3);
  EXPECT_EQ(orders.sent()[1].delivered.reason, "the name of a header has 256 bytes: AMQP takes 255");
  EXPECT_EQ(orders.sent()[2].delivered.reason, "its headers do not fit into a frame of 131072 bytes");
  EXPECT_EQ(receiver_->Take("ready_orders").size(), 2);
}

TEST_F(PublisherTest, AnExchangeThatDoesNotExistIsWaitedForAndHarmsNoOtherTopic) {
  receiver_->MakeQueue("ready_orders");
  receiver_->MakeQueue("ready_others");
  Site site(OptionsFor(*server_));
  Site::Topic& orders = site.Open("orders", {{"exchange", "missing"}});
  Site::Topic& others = site.Open("others");
  for (int i = 0; i < 3; ++i) {
    orders.Deliver(10);
    others.Deliver(1'000);
    ASSERT_TRUE(orders.Await());
  }
  ASSERT_TRUE(others.Await());
  EXPECT_EQ(orders.Count(DeliverOutcome::kRetry), 30);
  EXPECT_EQ(orders.last().reason, "RabbitMQ closed the channel: 404 NOT_FOUND - no exchange 'missing' in vhost '/'");
  EXPECT_EQ(others.Count(DeliverOutcome::kConfirmed), 3'000);
  EXPECT_EQ(receiver_->Take("ready_others").size(), 3'000);

  receiver_->MakeExchange("missing", "ready_orders", "ready_orders");
  orders.AwaitHealth();
  EXPECT_EQ(receiver_->Take("ready_orders").size(), 1);
  receiver_->DeleteExchange("missing");
}

TEST_F(PublisherTest, AJobWithAMissingExchangeCostsItsNeighboursNothing) {
  receiver_->MakeQueue("ready_orders");
  receiver_->MakeExchange("there", "ready_orders", "ready_orders");
  Site site(OptionsFor(*server_));
  Site::Topic& orders = site.Open("orders", {{"exchange", "{key}"}});
  constexpr size_t kJobs = 2'000;
  const auto is_bad = [](size_t i) { return i % 500 == 250; };
  const auto mix = [&](size_t i, JobView& job) { job.key = is_bad(i) ? "missing" : "there"; };
  orders.Deliver(kJobs, mix);
  ASSERT_TRUE(orders.Await());
  for (size_t i = 0; i < kJobs; ++i) {
    const Delivered& delivered = orders.sent()[i].delivered;
    ASSERT_EQ(delivered.outcome, is_bad(i) ? DeliverOutcome::kRetry : DeliverOutcome::kConfirmed) << i;
    if (is_bad(i)) {
      EXPECT_THAT(delivered.reason, HasSubstr("no exchange 'missing' in vhost '/'"));
    }
  }
  std::set<std::string> arrived;
  for (const Received& message : receiver_->Take("ready_orders")) arrived.insert(message.message_id);
  EXPECT_EQ(arrived.size(), kJobs - 4);

  receiver_->MakeExchange("missing", "ready_orders", "ready_orders");
  Site::Topic& again = site.Open("orders", {{"exchange", "{key}"}});
  again.Deliver(kJobs, mix);
  ASSERT_TRUE(again.Await());
  EXPECT_EQ(again.Count(DeliverOutcome::kConfirmed), kJobs) << "it is there now";
  receiver_->DeleteExchange("missing");
  receiver_->DeleteExchange("there");
}

TEST_F(PublisherTest, JobsOfAnExchangeThatWasMissingAMomentAgoAreNotSentAndCostNoAttempt) {
  Options options = OptionsFor(*server_);
  options.backoff_max = Millis(60'000);
  Site site(options);
  Site::Topic& orders = site.Open("orders", {{"exchange", "{key}"}});
  const std::vector<std::string> keys = {"missing", "absent"};
  for (const std::string& key : keys) {
    orders.Deliver(1, [&](size_t, JobView& job) { job.key = key; });
    ASSERT_TRUE(orders.Await());
    EXPECT_FALSE(orders.last().unsent) << "it was sent";
  }
  orders.Deliver(2, [&](size_t i, JobView& job) { job.key = keys[i]; });
  ASSERT_TRUE(orders.Await());
  for (size_t i = 0; i < 2; ++i) {
    const Delivered& delivered = orders.sent()[2 + i].delivered;
    EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry);
    EXPECT_TRUE(delivered.unsent);
    EXPECT_THAT(delivered.reason, HasSubstr(fmt::format("no exchange '{}' in vhost '/'", keys[i])));
    ASSERT_TRUE(delivered.delay);
    EXPECT_GT(*delivered.delay, Millis(0));
    EXPECT_LE(*delivered.delay, options.backoff_max) << "until it is tried again";
  }
}

TEST_F(PublisherTest, AQueueThatIsFullMeansRetry) {
  receiver_->MakeQueue("ready_orders", 3);
  Site site(OptionsFor(*server_));
  Site::Topic& orders = site.Open("orders");
  orders.Deliver(10);
  ASSERT_TRUE(orders.Await());
  EXPECT_EQ(orders.Count(DeliverOutcome::kConfirmed), 3);
  EXPECT_EQ(orders.Count(DeliverOutcome::kRetry), 7);
  EXPECT_THAT(orders.last().reason, HasSubstr("a queue is full"));
  EXPECT_EQ(receiver_->Take("ready_orders").size(), 3);
  orders.Deliver(3);
  ASSERT_TRUE(orders.Await());
  EXPECT_EQ(orders.Count(DeliverOutcome::kConfirmed), 6);
}

TEST_F(PublisherTest, NoMoreThanInFlightIsUnconfirmed) {
  receiver_->MakeQueue("ready_orders");
  Site site(OptionsFor(*server_));
  Site::Topic& orders = site.Open("orders", {{"in_flight", "3"}});
  orders.Deliver(50);
  ASSERT_TRUE(orders.Await());
  EXPECT_EQ(orders.Count(DeliverOutcome::kConfirmed), 50) << "what is confirmed makes room for others";
  EXPECT_EQ(receiver_->Take("ready_orders").size(), 50);

  server_->Pause();  // it confirms nothing
  orders.Deliver(50);
  orders.Close();
  server_->Continue();
  const auto sent = [](const Site::Sent& one) { return !one.delivered.unsent; };
  EXPECT_EQ(std::ranges::count_if(orders.sent(), sent), 50 + 3);
  EXPECT_EQ(orders.Count(DeliverOutcome::kRetry), 50);
}

TEST_F(PublisherTest, ManyTopicsTakeTurns) {
  receiver_->MakeQueue("shared");
  Site site(OptionsFor(*server_));
  Site::Topic& large = site.Open("large", {{"in_flight", "100000"}, {"routing_key", "shared"}});
  Site::Topic& small = site.Open("small", {{"routing_key", "shared"}});
  large.AwaitHealth();
  small.AwaitHealth();
  receiver_->Take("shared");
  constexpr size_t kJobs = 20'000;
  const std::string payload(2'000, 'p');
  large.Deliver(kJobs, [&](size_t, JobView& job) { job.payload = payload; });
  small.Deliver(1);
  ASSERT_TRUE(small.Await());
  ASSERT_TRUE(large.Await());
  EXPECT_EQ(small.Count(DeliverOutcome::kConfirmed), small.sent().size());
  const std::vector<Received> received = receiver_->Take("shared");
  ASSERT_EQ(received.size(), kJobs + 1);
  const auto at = std::ranges::find(received, small.sent().back().id, &Received::message_id) - received.begin();
  EXPECT_LT(at, kJobs / 2) << "one job waited for thousands of another topic";
}

TEST_F(PublisherTest, ATopicWithLargeJobsTakesTurnsToo) {
  receiver_->MakeQueue("shared");
  Site site(OptionsFor(*server_));
  Site::Topic& large = site.Open("large", {{"timeout_ms", "60000"}, {"routing_key", "shared"}});
  Site::Topic& small = site.Open("small", {{"timeout_ms", "60000"}, {"routing_key", "shared"}});
  large.AwaitHealth();
  small.AwaitHealth();
  receiver_->Take("shared");
  constexpr size_t kJobs = 40;
  const std::string payload(1 << 20, 'p');
  large.Deliver(kJobs, [&](size_t, JobView& job) { job.payload = payload; });
  small.Deliver(1);
  ASSERT_TRUE(small.Await());
  ASSERT_TRUE(large.Await());
  const std::vector<Received> received = receiver_->Take("shared");
  ASSERT_EQ(received.size(), kJobs + 1);
  const auto at = std::ranges::find(received, small.sent().back().id, &Received::message_id) - received.begin();
  EXPECT_LT(at, kJobs / 2) << "one job waited for megabytes of another topic";
}

TEST_F(PublisherTest, AJobMayBeLargerThanAllBuffers) {
  receiver_->MakeQueue("ready_orders");
  Site site(OptionsFor(*server_));
  Site::Topic& orders = site.Open("orders", {{"timeout_ms", "60000"}});
  const std::string payload(16 << 20, 'p');
  orders.Deliver(3, [&](size_t, JobView& job) { job.payload = payload; });
  ASSERT_TRUE(orders.Await());
  EXPECT_EQ(orders.Count(DeliverOutcome::kConfirmed), 3);
  const auto received = receiver_->Take("ready_orders");
  ASSERT_EQ(received.size(), 3);
  EXPECT_EQ(received[2].body, payload);
}

TEST_F(PublisherTest, MoreTopicsThanChannelsTakeTurns) {
  receiver_->MakeQueue("shared");
  Options options = OptionsFor(*server_);
  options.channels_max = 4;
  Site site(options);
  std::vector<Site::Topic*> topics;
  const Settings settings{{"routing_key", "shared"}, {"timeout_ms", "60000"}};
  for (int i = 0; i < 12; ++i) topics.push_back(&site.Open(fmt::format("t{}", i), settings));
  for (int round = 0; round < 3; ++round) {
    for (Site::Topic* const topic : topics) topic->Deliver(100);
    for (Site::Topic* const topic : topics) ASSERT_TRUE(topic->Await());
  }
  for (Site::Topic* const topic : topics) {
    EXPECT_EQ(topic->Count(DeliverOutcome::kConfirmed), 300) << topic->last().reason;
  }
  EXPECT_EQ(receiver_->Take("shared").size(), 12 * 300);

  // Four topics that never have nothing to publish keep the channels for a second, not for ever.
  const auto all_quiet = [&] { return std::ranges::all_of(topics, [](auto* topic) { return topic->open() == 0; }); };
  std::vector<Site::Topic*> busy;
  for (int i = 0; i < 4; ++i) busy.push_back(&site.Open(fmt::format("busy{}", i), settings));
  const auto feed = [&] {
    for (Site::Topic* const topic : busy) {
      if (topic->open() < 100) topic->Deliver(100);
    }
  };
  feed();
  site.RunUntil([&] { return std::ranges::all_of(busy, [](auto* one) { return one->open() < 100; }); });
  for (Site::Topic* const topic : topics) topic->Deliver(1);
  ASSERT_TRUE(site.RunUntil([&] {
    feed();
    return all_quiet();
  }));
  for (Site::Topic* const topic : topics) EXPECT_EQ(topic->Count(DeliverOutcome::kConfirmed), 301);
  for (Site::Topic* const topic : busy) {
    ASSERT_TRUE(topic->Await());
    EXPECT_EQ(topic->Count(DeliverOutcome::kConfirmed), topic->sent().size()) << topic->last().reason;
  }
}

TEST_F(PublisherTest, AJobCostsTheSameHoweverManyTopicsWaitForAChannel) {
  constexpr size_t kJobs = 20;
  receiver_->MakeQueue("shared");
  Options options = OptionsFor(*server_);
  options.channels_max = 4;
  Site site(options);
  std::vector<Site::Topic*> topics;
  // One at a time: each job has a turn of its own.
  const Settings settings{{"routing_key", "shared"}, {"timeout_ms", "60000"}, {"in_flight", "1"}};
  for (int i = 0; i < 200; ++i) topics.push_back(&site.Open(fmt::format("t{}", i), settings));
  for (Site::Topic* const topic : topics) topic->Deliver(kJobs);
  for (Site::Topic* const topic : topics) {
    ASSERT_TRUE(topic->Await());
    EXPECT_EQ(topic->Count(DeliverOutcome::kConfirmed), kJobs) << topic->last().reason;
  }
  EXPECT_LT(site.publisher().looks(), 10 * kJobs * topics.size()) << "looks at topics, for all jobs";
}

TEST_F(PublisherTest, MoreTopicsThanAConnectionHasChannels) {
  receiver_->MakeQueue("shared");
  Site site(OptionsFor(*server_));
  std::vector<Site::Topic*> topics;
  const Settings settings{{"routing_key", "shared"}, {"timeout_ms", "60000"}};
  for (int i = 0; i < 2'100; ++i) topics.push_back(&site.Open(fmt::format("t{}", i), settings));
  for (int round = 1; round <= 2; ++round) {
    for (Site::Topic* const topic : topics) topic->Deliver(1);
    for (Site::Topic* const topic : topics) {
      ASSERT_TRUE(topic->Await());
      ASSERT_EQ(topic->last().outcome, DeliverOutcome::kConfirmed) << topic->last().reason;
    }
    EXPECT_EQ(receiver_->Take("shared").size(), topics.size());
  }
}

TEST_F(PublisherTest, ChannelsAreGivenBack) {
  receiver_->MakeQueue("ready_orders");
  Site site(OptionsFor(*server_));
  // More than the 2047 that the connection has at a time.
  for (int i = 0; i < 2'200; ++i) {
    Site::Topic& orders = site.Open("orders", {{"timeout_ms", "60000"}});
    orders.Deliver(1);
    ASSERT_TRUE(orders.Await());
    ASSERT_EQ(orders.last().outcome, DeliverOutcome::kConfirmed) << i << ": " << orders.last().reason;
    orders.Close();
  }
  EXPECT_EQ(receiver_->Take("ready_orders").size(), 2'200);
}

}  // namespace
}  // namespace tocsin::rabbitmq
