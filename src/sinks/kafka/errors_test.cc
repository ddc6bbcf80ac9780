// Errors on demand: librdkafka's own imitation of a cluster moves leaders and answers as it is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "sinks/kafka/kafka_test_site.h"
#include "sinks/kafka/producer.h"
#include "sinks/kafka/sink.h"

namespace tocsin::kafka {
namespace {

using testing::HasSubstr;

constexpr int16_t kProduce = 0;  // of Kafka's requests
constexpr int kBrokers = 3;

class KafkaErrors : public testing::Test {
 protected:
  void SetUp() override {
    std::array<char, 256> why{};
    owner_ = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why.data(), why.size());
    ASSERT_NE(owner_, nullptr) << why.data();
    cluster_ = rd_kafka_mock_cluster_new(owner_, kBrokers);
    rd_kafka_mock_topic_create(cluster_, "ready_orders", 1, kBrokers);
    options_.brokers = rd_kafka_mock_cluster_bootstraps(cluster_);
    sinks_ = Factory::Make(options_, loop_.clock()).value();
  }
  void TearDown() override {
    sinks_.reset();
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(owner_);
  }

  void Leader(int32_t broker) { rd_kafka_mock_partition_set_leader(cluster_, "ready_orders", 0, broker); }
  void Up(bool up) {
    for (int32_t broker = 1; broker <= kBrokers; ++broker) {
      if (up) {
        rd_kafka_mock_broker_set_up(cluster_, broker);
      } else {
        rd_kafka_mock_broker_set_down(cluster_, broker);
      }
    }
  }
  void Answer(const std::vector<rd_kafka_resp_err_t>& errors) {
    rd_kafka_mock_push_request_errors_array(cluster_, kProduce, errors.size(), errors.data());
  }
  static std::vector<TestJob> Jobs(size_t count) { return std::vector<TestJob>(count, {.id = "job"}); }

  TestLoop loop_;
  rd_kafka_t* owner_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
  Options options_;
  std::unique_ptr<Factory> sinks_;
};

TEST_F(KafkaErrors, ALeaderThatMovesIsFollowed) {
  Leader(1);
  TestSink sink(loop_, *sinks_, KafkaTopic("orders", {{"timeout_ms", "30000"}}));
  for (int32_t turn = 0; turn < 6; ++turn) {
    for (int i = 0; i < 5; ++i) sink.Deliver(Jobs(20));
    Leader(1 + (turn + 1) % kBrokers);
  }
  ASSERT_TRUE(sink.Await());
  EXPECT_EQ(sink.CountOf(DeliverOutcome::kConfirmed), sink.answers().size());
}

TEST_F(KafkaErrors, WhatPassesIsNotSeenByTheJob) {
  TestSink sink(loop_, *sinks_, KafkaTopic("orders", {{"timeout_ms", "30000"}}));
  Answer({RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
          RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS});
  sink.Deliver(Jobs(10));
  ASSERT_TRUE(sink.Await());
  EXPECT_EQ(sink.CountOf(DeliverOutcome::kConfirmed), 10);
}

TEST_F(KafkaErrors, WhatARightWouldMendIsTriedAgain) {
  TestSink sink(loop_, *sinks_, KafkaTopic("orders"));
  Answer({RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED});
  sink.Deliver(Jobs(1));
  ASSERT_TRUE(sink.Await());
  EXPECT_EQ(sink.answers()[0]->outcome, DeliverOutcome::kRetry);
  EXPECT_THAT(sink.answers()[0]->reason, HasSubstr("authorization"));
}

TEST_F(KafkaErrors, AMessageThatABrokerDoesNotTakeIsRefusedAndABatchIsTriedAgain) {
  for (const rd_kafka_resp_err_t error : {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_INVALID_RECORD}) {
    TestSink sink(loop_, *sinks_, KafkaTopic("orders"));
    Answer({error});
    sink.Deliver(Jobs(1));
    ASSERT_TRUE(sink.Await());
    EXPECT_EQ(sink.answers()[0]->outcome, DeliverOutcome::kRefused) << rd_kafka_err2name(error);
    Answer({error});
    sink.Deliver(Jobs(10));
    ASSERT_TRUE(sink.Await());
    EXPECT_EQ(sink.CountOf(DeliverOutcome::kRetry) + sink.CountOf(DeliverOutcome::kConfirmed), 10)
        << "of a batch none is refused for " << rd_kafka_err2name(error);
    EXPECT_GT(sink.CountOf(DeliverOutcome::kRetry), 0);
  }
}

TEST_F(KafkaErrors, NothingIsSentWhileBrokersAreDownAndAllIsWhenTheyAreBack) {
  TestSink sink(loop_, *sinks_, KafkaTopic("orders", {{"timeout_ms", "801"}}));  // rounded up
  Up(false);
  sink.Deliver(Jobs(50));
  ASSERT_TRUE(sink.Await());
  EXPECT_EQ(sink.CountOf(DeliverOutcome::kRetry), 50);
  EXPECT_THAT(sink.answers()[0]->reason, HasSubstr("Kafka has not confirmed within 1000 ms"));
  for (const auto& answer : sink.answers()) EXPECT_TRUE(answer->unsent) << "it costs no attempt";
  Up(true);
  TestSink patient(loop_, *sinks_, KafkaTopic("orders", {{"timeout_ms", "60000"}}));
  patient.Deliver(Jobs(50));
  ASSERT_TRUE(patient.Await());
  EXPECT_EQ(patient.CountOf(DeliverOutcome::kConfirmed), 50);
}

TEST_F(KafkaErrors, AFullQueueMakesJobsWaitAndNoneIsLost) {
  constexpr size_t kJobs = 17'000;
  options_.message_size = 2 << 20;
  const auto sinks = Factory::Make(options_, loop_.clock()).value();
  TestSink sink(loop_, *sinks, KafkaTopic("orders", {{"timeout_ms", "2000"}}));
  Up(false);  // so that nothing is read from the payload, which all jobs share
  auto batch = std::make_shared<JobBatch>();
  const std::string_view payload(batch->bytes.emplace_back(std::make_unique<char[]>(1 << 20)).get(), 1 << 20);
  JobView job;
  job.own_id = "large";
  job.payload = payload;
  batch->jobs.assign(kJobs, job);  // more than librdkafka's 16 GiB
  sink.Deliver(batch);
  EXPECT_EQ(sink.under_way(), kJobs) << "none is answered because there is no room";
  sink.Deliver(Jobs(10));
  ASSERT_TRUE(sink.Await());
  EXPECT_EQ(sink.CountOf(DeliverOutcome::kRetry), kJobs + 10);
}

TEST_F(KafkaErrors, TopicsThatCannotBeWrittenTakeNoRoomFromOthers) {
  rd_kafka_mock_topic_create(cluster_, "ready_healthy", 1, kBrokers);
  Leader(1);
  rd_kafka_mock_partition_set_leader(cluster_, "ready_healthy", 0, 2);
  TestSink healthy(loop_, *sinks_, KafkaTopic("healthy", {{"timeout_ms", "60000"}}));
  healthy.Deliver(Jobs(1));
  ASSERT_TRUE(healthy.Await());
  rd_kafka_mock_broker_set_down(cluster_, 1);
  TestSink away(loop_, *sinks_, KafkaTopic("orders", {{"timeout_ms", "60000"}}));
  auto batch = std::make_shared<JobBatch>();
  const std::string_view payload(batch->bytes.emplace_back(std::make_unique<char[]>(1 << 20)).get(), 1'000'000);
  JobView job;
  job.payload = payload;
  batch->jobs.assign(20 * 64, job);  // what twenty topics may hold
  away.Deliver(batch);
  auto few = std::make_shared<JobBatch>();
  few->jobs.assign(10, job);
  healthy.Deliver(std::move(few));
  ASSERT_TRUE(healthy.Await(Millis(20'000)));
  EXPECT_EQ(healthy.CountOf(DeliverOutcome::kConfirmed), 11);
  EXPECT_EQ(away.under_way(), 20 * 64);
}

TEST_F(KafkaErrors, CloseAnswersWhatWaitsForRoomToo) {
  constexpr size_t kJobs = 18'000;
  TestSink sink(loop_, *sinks_, KafkaTopic("orders", {{"timeout_ms", "600000"}}));
  Up(false);
  auto batch = std::make_shared<JobBatch>();
  const std::string_view payload(batch->bytes.emplace_back(std::make_unique<char[]>(1 << 20)).get(), 1'000'000);
  JobView job;
  job.payload = payload;
  batch->jobs.assign(kJobs, job);
  const std::weak_ptr<const JobBatch> held = batch;
  sink.Deliver(std::move(batch));
  ASSERT_TRUE(sink.Close(Millis(10'000)));
  EXPECT_EQ(sink.CountOf(DeliverOutcome::kRetry), kJobs);
  EXPECT_FALSE(sink.answers().front()->unsent) << "librdkafka has it";
  EXPECT_TRUE(sink.answers().back()->unsent) << "it costs no attempt";
  EXPECT_FALSE(held.expired()) << "librdkafka may still send them";
  sinks_.reset();
  EXPECT_TRUE(held.expired());
}

TEST_F(KafkaErrors, AProducerThatFailsForGoodIsReplaced) {
  auto producer = Producer::Make(options_, Millis(60'000), loop_.clock()).value();
  KafkaSink sink(producer, Addressing::Parse(KafkaTopic("orders")).value(), loop_.loop());
  size_t confirmed = 0;
  std::vector<std::string> reasons;
  const auto deliver = [&](size_t count) {
    sink.Deliver(MakeBatch(Jobs(count)), [&](size_t, Delivered delivered) {
      if (delivered.outcome == DeliverOutcome::kConfirmed) return void(++confirmed);
      EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry);
      reasons.push_back(delivered.reason);
    });
  };
  deliver(5);
  ASSERT_TRUE(loop_.RunUntil([&] { return confirmed == 5; }, kSoon));
  Up(false);
  deliver(100);
  {
    const auto held = producer->Hold();
    rd_kafka_test_fatal_error(producer->client().native(), RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "made up");
  }
  ASSERT_TRUE(loop_.RunUntil([&] { return reasons.size() == 100; }, kSoon)) << "all that was under way is answered";
  Up(true);
  for (int i = 0; i < 1'000 && confirmed < 6; ++i) {  // the failed one answers at once until it is replaced
    const size_t answered = confirmed + reasons.size();
    deliver(1);
    ASSERT_TRUE(loop_.RunUntil([&] { return confirmed + reasons.size() > answered; }, kSoon));
    loop_.RunUntil([] { return false; }, Millis(10));
  }
  EXPECT_EQ(confirmed, 6);
  bool closed = false;
  sink.Close([&] { closed = true; });
  ASSERT_TRUE(loop_.RunUntil([&] { return closed; }, kSoon));
}

TEST_F(KafkaErrors, AJobCannotNameATopicThatBelongsToOthers) {
  options_.owners = Owners::Parse("kafka:shop*=shop-").value();
  const auto sinks = Factory::Make(options_, loop_.clock()).value();
  TestSink sink(loop_, *sinks, KafkaTopic("orders", {{"kafka_topic", "{key}"}}));
  sink.Deliver({{.id = "a", .key = "ready_orders"}, {.id = "b", .key = "shop-orders"}});
  ASSERT_TRUE(sink.Await());
  EXPECT_EQ(sink.answers()[0]->outcome, DeliverOutcome::kConfirmed) << sink.answers()[0]->reason;
  EXPECT_EQ(sink.answers()[1]->outcome, DeliverOutcome::kRefused);
  EXPECT_THAT(sink.answers()[1]->reason, HasSubstr("may not use the Kafka topic"));
}

TEST_F(KafkaErrors, SinksWithOneTimeoutShareAProducer) {
  TestSink first(loop_, *sinks_, KafkaTopic("orders"));
  TestSink second(loop_, *sinks_, KafkaTopic("others", {{"kafka_topic", "ready_orders"}}));
  TestSink third(loop_, *sinks_, KafkaTopic("hasty", {{"kafka_topic", "ready_orders"}, {"timeout_ms", "4000"}}));
  first.Deliver(Jobs(100));
  second.Deliver(Jobs(100));
  third.Deliver(Jobs(100));
  EXPECT_TRUE(first.Close());
  ASSERT_TRUE(second.Await());
  ASSERT_TRUE(third.Await());
  EXPECT_EQ(second.CountOf(DeliverOutcome::kConfirmed), 100) << "the end of the first is none of the second";
  EXPECT_EQ(third.CountOf(DeliverOutcome::kConfirmed), 100);
}

}  // namespace
}  // namespace tocsin::kafka
