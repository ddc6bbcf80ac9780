#include "sinks/kafka/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::kafka {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Verdict, WhatKafkaTakesIsConfirmed) {
  const Delivered delivered = VerdictOf(RD_KAFKA_RESP_ERR_NO_ERROR, Millis(5'000), "a broker is away");
  EXPECT_EQ(delivered.outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(delivered.reason, "");
}

TEST(Verdict, WhatMayPassIsTriedAgain) {
  for (const rd_kafka_resp_err_t error :
       {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, RD_KAFKA_RESP_ERR__PURGE_QUEUE, RD_KAFKA_RESP_ERR__PURGE_INFLIGHT,
        RD_KAFKA_RESP_ERR__FATAL, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION}) {
    const Delivered delivered = VerdictOf(error, Millis(5'000), "127.0.0.1:9: Connection refused");
    EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry) << rd_kafka_err2name(error);
    EXPECT_THAT(delivered.reason, HasSubstr("Connection refused"));
    EXPECT_THAT(VerdictOf(error, Millis(5'000), "").reason, Not(IsEmpty()));
  }
  EXPECT_EQ(VerdictOf(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, Millis(5'000), "").reason,
            "Kafka has not confirmed within 5000 ms");
}

TEST(Verdict, WhatNeverPassesIsRefused) {
  for (const rd_kafka_resp_err_t error :
       {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, RD_KAFKA_RESP_ERR_INVALID_RECORD}) {
    const Delivered delivered = VerdictOf(error, Millis(5'000), "something else");
    EXPECT_EQ(delivered.outcome, DeliverOutcome::kRefused) << rd_kafka_err2name(error);
    EXPECT_THAT(delivered.reason, Not(HasSubstr("something else"))) << "that is not why";
    EXPECT_THAT(delivered.reason, Not(IsEmpty()));
  }
}

TEST(Verdict, WhatNeverLeftCostsNoAttempt) {
  EXPECT_TRUE(VerdictOf(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, Millis(5'000), "", true).unsent);
  EXPECT_FALSE(VerdictOf(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, Millis(5'000), "", false).unsent) << "Kafka may have it";
  EXPECT_FALSE(VerdictOf(RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, Millis(5'000), "", true).unsent) << "a broker said so";
}

TEST(Verdict, ARecordWithAKeyDoesNotPayForThoseWithoutOne) {
  constexpr rd_kafka_resp_err_t kError = RD_KAFKA_RESP_ERR_INVALID_RECORD;
  const Delivered keyed = VerdictInBatch(kError, {.others_keyless = true});
  EXPECT_EQ(keyed.outcome, DeliverOutcome::kRetry);
  EXPECT_TRUE(keyed.unsent);
  EXPECT_GT(keyed.delay, Millis(0));
  EXPECT_FALSE(VerdictInBatch(kError, {.keyless = true, .others_keyless = true}).unsent);
  EXPECT_FALSE(VerdictInBatch(kError, {}).unsent) << "nobody knows which it is";
  EXPECT_FALSE(VerdictInBatch(RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, {.others_keyless = true}).unsent);
}

TEST(Verdict, OneMessageOfABatchIsBlamedAndTheOthersComeAgainApart) {
  for (const rd_kafka_resp_err_t error :
       {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_INVALID_RECORD, RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP}) {
    EXPECT_FALSE(VerdictInBatch(error, {}).unsent);
    const Delivered second = VerdictInBatch(error, {.other_likelier = true, .place = 1});
    const Delivered third = VerdictInBatch(error, {.other_likelier = true, .place = 2});
    EXPECT_EQ(second.outcome, DeliverOutcome::kRetry);
    EXPECT_TRUE(second.unsent);
    EXPECT_THAT(second.reason, HasSubstr("batch"));
    EXPECT_GT(third.delay, second.delay);
    EXPECT_LE(VerdictInBatch(error, {.other_likelier = true, .place = 100'000}).delay, Millis(5'000));
  }
}

TEST(Verdict, WhatIsWrongWithABatchIsNotTheFaultOfEachMessage) {
  for (const rd_kafka_resp_err_t error :
       {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_INVALID_RECORD, RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP}) {
    EXPECT_TRUE(IsOfBatch(error));
    EXPECT_EQ(VerdictInBatch(error, {.alone = true}).outcome, DeliverOutcome::kRefused);
    EXPECT_EQ(VerdictInBatch(error, {}).outcome, DeliverOutcome::kRetry);
    EXPECT_THAT(VerdictInBatch(error, {}).reason, HasSubstr("batch"));
  }
  EXPECT_FALSE(IsOfBatch(RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS));
  EXPECT_THAT(VerdictInBatch(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, {}).reason, HasSubstr("kafka.message_size"));
}

TEST(Verdict, NamesOfTopicsAreThoseThatKafkaTakes) {
  EXPECT_TRUE(CheckTopicName("ready_orders"));
  EXPECT_TRUE(CheckTopicName("A.b-C_9"));
  EXPECT_TRUE(CheckTopicName(std::string(249, 'x')));
  EXPECT_TRUE(CheckTopicName("..."));
  for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string(250, 'x'),
                                  std::string("a b"), std::string("a/b"), std::string("caf\xc3\xa9")}) {
    EXPECT_FALSE(CheckTopicName(name)) << name;
  }
  EXPECT_THAT(CheckTopicName("a/b").error().message, HasSubstr("a/b"));
}

}  // namespace
}  // namespace tocsin::kafka
