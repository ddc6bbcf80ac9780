// What the broker answers, and what becomes of jobs then.
#include "sinks/rabbitmq/rabbitmq_test_site.h"

namespace tocsin::rabbitmq {
namespace {

using testing::HasSubstr;
using testing::Not;

using PublisherTest = BrokerTest;

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
