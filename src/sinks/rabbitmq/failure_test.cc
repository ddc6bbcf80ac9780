// Connections that are closed, blocked, or silent. What is killed is in contract_test.cc.
#include <atomic>
#include <set>
#include <thread>

#include "sinks/rabbitmq/rabbitmq_test_site.h"

namespace tocsin::rabbitmq {
namespace {

using testing::HasSubstr;
using testing::Not;

class FailureTest : public BrokerTest {
 protected:
  void Control(const std::vector<std::string>& words) {
    const Status done = server_->Control(words);
    ASSERT_TRUE(done) << done.error().message;
  }
  void Block() { Control({"set_vm_memory_high_watermark", "0"}); }
  void Unblock() { Control({"set_vm_memory_high_watermark", "0.6"}); }
};

// Numbers of confirms begin anew on each channel: one that was taken for another's would be a job that is lost.
TEST_F(FailureTest, NothingIsLostWhenTheBrokerClosesConnectionsUnderLoad) {
  receiver_->MakeQueue("ready_orders");
  Site site(OptionsFor(*server_));
  Site::Topic& orders = site.Open("orders");
  std::atomic<int> closed = 0;
  std::jthread closer([this, &closed] {
    for (; closed < 3; ++closed) EXPECT_TRUE(server_->Control({"close_all_connections", "test"}));
  });
  while (closed < 3 || orders.sent().size() < 10'000) {
    if (orders.open() > 2'000) site.RunUntil([&] { return orders.open() <= 2'000; });
    orders.Deliver(100);
    site.RunUntil([] { return true; });
  }
  closer.join();
  ASSERT_TRUE(orders.Await());
  EXPECT_EQ(orders.Count(DeliverOutcome::kRefused), 0);
  RecordProperty("retried", std::to_string(orders.Count(DeliverOutcome::kRetry)));
  orders.AwaitHealth();

  receiver_ = std::make_unique<Receiver>(*server_);  // it was closed too
  std::set<std::string> arrived;
  size_t messages = 0;
  for (const Received& message : receiver_->Take("ready_orders")) {
    arrived.insert(message.message_id);
    ++messages;
  }
  EXPECT_EQ(messages, arrived.size()) << "nothing was delivered twice here";
  for (const Site::Sent& sent : orders.sent()) {
    if (sent.delivered.outcome == DeliverOutcome::kConfirmed) {
      ASSERT_TRUE(arrived.contains(sent.id)) << sent.id << " was confirmed";
    } else {
      ASSERT_THAT(sent.delivered.reason, HasSubstr("320 CONNECTION_FORCED - test"));
    }
  }
}

TEST_F(FailureTest, ABlockedConnectionWaitsAndTimesOutNothing) {
  receiver_->MakeQueue("ready_orders");
  receiver_->MakeQueue("ready_others");
  Site site(OptionsFor(*server_));
  Site::Topic& orders = site.Open("orders", {{"timeout_ms", "500"}});
  Site::Topic& others = site.Open("others", {{"timeout_ms", "500"}});
  orders.AwaitHealth();
  Block();
  // Far more than the buffers of the sockets hold.
  const std::string payload(100'000, 'p');
  orders.Deliver(400, [&](size_t, JobView& job) { job.payload = payload; });
  others.Deliver(1);
  site.RunFor(Millis(3'000));  // six times the time-out, and more than a heartbeat
  EXPECT_GT(orders.open(), 0);
  EXPECT_EQ(orders.Count(DeliverOutcome::kRetry), 0) << orders.last().reason;

  // A sink can be closed meanwhile.
  others.Deliver(1);
  others.Close();
  EXPECT_EQ(others.last().outcome, DeliverOutcome::kRetry);
  EXPECT_TRUE(others.last().unsent) << "it costs no attempt";

  Unblock();
  ASSERT_TRUE(orders.Await());
  EXPECT_EQ(orders.Count(DeliverOutcome::kConfirmed), 401) << orders.last().reason;
  EXPECT_EQ(receiver_->Take("ready_orders").size(), 401);
}

TEST_F(FailureTest, ABrokerThatFallsSilentIsLeftAndFoundAgain) {
  receiver_->MakeQueue("ready_orders");
  Options options = OptionsFor(*server_);
  options.heartbeat = Millis(1'000);
  options.connect_timeout = Millis(1'000);
  Site site(options);
  Site::Topic& orders = site.Open("orders", {{"timeout_ms", "20000"}});
  orders.AwaitHealth();
  server_->Pause();
  orders.Deliver(5);
  ASSERT_TRUE(orders.Await(Millis(15'000)));
  EXPECT_EQ(orders.Count(DeliverOutcome::kRetry), 5);
  EXPECT_THAT(orders.last().reason, HasSubstr("no sign of life for 2 s"));
  orders.Deliver(5);
  site.RunFor(Millis(2'000));  // connections are taken, and nobody speaks
  EXPECT_EQ(orders.open(), 5);
  server_->Continue();
  ASSERT_TRUE(orders.Await());
  EXPECT_EQ(orders.Count(DeliverOutcome::kConfirmed), 6) << "those that were not sent have waited";
}

TEST_F(FailureTest, WhileTheBrokerIsAwayJobsCostNoAttempt) {
  Site site(OptionsFor(*server_));
  server_->Kill();
  Site::Topic& orders = site.Open("orders", {{"timeout_ms", "500"}});
  orders.Deliver(20);
  EXPECT_TRUE(orders.Await(Millis(10'000)));
  ASSERT_TRUE(server_->Start());
  for (const Site::Sent& sent : orders.sent()) {
    EXPECT_EQ(sent.delivered.outcome, DeliverOutcome::kRetry);
    EXPECT_TRUE(sent.delivered.unsent) << sent.delivered.reason;
  }
  receiver_ = std::make_unique<Receiver>(*server_);
  receiver_->MakeQueue("ready_orders");
  orders.AwaitHealth();
}

TEST_F(FailureTest, AnIdleConnectionIsKept) {
  receiver_->MakeQueue("ready_orders");
  Options options = OptionsFor(*server_);
  options.heartbeat = Millis(1'000);
  Site site(options);
  Site::Topic& orders = site.Open("orders");
  orders.AwaitHealth();
  site.RunFor(Millis(4'000));
  orders.Deliver(1);
  ASSERT_TRUE(orders.Await());
  EXPECT_EQ(orders.last().outcome, DeliverOutcome::kConfirmed);
  const std::string log = server_->Log();
  EXPECT_THAT(log, HasSubstr("accepting AMQP connection"));
  EXPECT_THAT(log, Not(HasSubstr("missed heartbeats")));
}

TEST_F(FailureTest, ABrokerThatHangsIsGivenUpAfterTheTimeout) {
  receiver_->MakeQueue("ready_orders");
  Site site(OptionsFor(*server_));
  Site::Topic& orders = site.Open("orders", {{"timeout_ms", "500"}});
  orders.AwaitHealth();
  server_->Pause();
  orders.Deliver(10);
  ASSERT_TRUE(orders.Await(Millis(10'000)));
  EXPECT_EQ(orders.Count(DeliverOutcome::kRetry), 10);
  EXPECT_EQ(orders.last().reason, "RabbitMQ did not confirm it within 500 ms");
  server_->Continue();
  orders.AwaitHealth();
}

}  // namespace
}  // namespace tocsin::rabbitmq
