#include "storage/redis/record.h"

#include <gtest/gtest.h>

namespace tocsin::redis {
namespace {

NewJob Asked() {
  NewJob job;
  job.id = "own";
  job.key = "key";
  job.trigger = Trigger::kEither;
  job.count = 3;
  job.max_attempts = 7;
  job.headers = {{"a", "1"}, {"empty", ""}};
  job.payload = std::string_view("pay\0load", 8);
  return job;
}

constexpr std::string_view kDue("\0\0\0\0\0\x12\x34", 7);  // 0x1234

/// As the scripts store it.
std::string Stored(const NewJob& job) {
  std::string record;
  EncodeRecord(job, DefaultTopic("t"), record);
  return std::string(kDue) + record;
}

TEST(RedisRecord, AJobComesBackAsItWasAskedFor) {
  const std::string record = Stored(Asked());
  JobView view;
  ASSERT_TRUE(DecodeJob(record, "", view));
  EXPECT_EQ(view.own_id, "own");
  EXPECT_EQ(view.key, "key");
  EXPECT_EQ(view.trigger, Trigger::kEither);
  EXPECT_EQ(view.max_attempts, 7U);
  ASSERT_EQ(view.headers.size(), 2U);
  EXPECT_EQ(view.headers[1].name, "empty");
  EXPECT_EQ(view.headers[1].value, "");
  EXPECT_EQ(view.payload, std::string_view("pay\0load", 8));
  EXPECT_EQ(view.attempt, 0U);
  EXPECT_EQ(view.due, FromMs(0x1234));
  ASSERT_TRUE(DecodeJob(std::string(7, '\0') + record.substr(7), "", view));
  EXPECT_EQ(view.due, kNever);
}

TEST(RedisRecord, ANoteTellsTheAttemptsTheReasonAndANewTrigger) {
  NewJob job = Asked();
  job.trigger = Trigger::kCount;
  const std::string record = Stored(job);
  JobView view;
  ASSERT_TRUE(DecodeJob(record, std::string_view("\0\0\0\0\0\0\0\0\3\4why", 13), view));
  EXPECT_EQ(view.attempt, 3U);
  EXPECT_EQ(view.reason, "why");
  EXPECT_EQ(view.trigger, Trigger::kEither);
}

TEST(RedisRecord, WhatIsNotWholeIsRefused) {
  const std::string record = Stored(Asked());
  const size_t before_payload = record.size() - 8;
  for (size_t size = 0; size < before_payload; ++size) {
    JobView view;
    const Status decoded = DecodeJob(std::string_view(record).substr(0, size), "", view);
    ASSERT_FALSE(decoded) << size;
    EXPECT_EQ(decoded.error().code, Code::kCorrupt);
  }
  JobView view;
  EXPECT_FALSE(DecodeJob(record, "short", view));
}

TEST(RedisRecord, Invariant18_AnUnknownFormatIsRefusedLoudly) {
  std::string record = Stored(Asked());
  record[kDue.size()] = 2;
  JobView view;
  const Status decoded = DecodeJob(record, "", view);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Code::kUnsupportedFormat);
  const auto topic = DecodeTopic("t", EncodeTopic(DefaultTopic("t")) + EncodeBirth(7) + "more");
  ASSERT_FALSE(topic);
  EXPECT_EQ(topic.error().code, Code::kUnsupportedFormat);
}

TEST(RedisRecord, ATopicComesBackAsItWas) {
  Topic topic = DefaultTopic("settings");
  topic.slots = 64;
  topic.capacity_jobs = 5;
  topic.capacity_bytes = uint64_t{1} << 60;
  topic.backoff_max = Millis(7);
  topic.paused = true;
  topic.version = 9;
  const auto read = DecodeTopic("settings", EncodeTopic(topic) + EncodeBirth(7));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, topic);
  EXPECT_EQ(read->birth, 7U);
}

TEST(RedisRecord, MembersAreInTheOrderOfTheirNumbers) {
  std::string before;
  for (const uint64_t sequence :
       {uint64_t{1}, uint64_t{255}, uint64_t{256}, uint64_t{1} << 40, (uint64_t{1} << 53) - 1}) {
    const std::string member = MemberOf(sequence);
    EXPECT_LT(before, member);
    EXPECT_EQ(SequenceOf(member), sequence);
    before = member;
  }
  EXPECT_EQ(SequenceOf("short"), std::nullopt);
}

TEST(RedisRecord, AnIdUnderAnotherKeyIsAnotherField) {
  EXPECT_NE(IdField({"b", "a"}), IdField({"ab", ""}));
  EXPECT_NE(IdField({"a", "k"}), IdField({"a", "l"}));
  EXPECT_EQ(IdField({"", "k"}), "");
}

}  // namespace
}  // namespace tocsin::redis
