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

TEST(RedisRecord, AJobComesBackAsItWasAskedFor) {
  std::string record;
  EncodeRecord(Asked(), DefaultTopic("t"), record);
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
}

TEST(RedisRecord, WhatIsNotWholeIsRefused) {
  std::string record;
  EncodeRecord(Asked(), DefaultTopic("t"), record);
  const size_t before_payload = record.size() - 8;
  for (size_t size = 0; size < before_payload; ++size) {
    JobView view;
    const Status decoded = DecodeJob(std::string_view(record).substr(0, size), "", view);
    ASSERT_FALSE(decoded) << size;
    EXPECT_EQ(decoded.error().code, Code::kCorrupt);
  }
  JobView view;
  EXPECT_FALSE(DecodeJob(record, "short", view));
  EXPECT_FALSE(DecodeJob(record, std::string(21, '\0') + "\xFF\xFF", view)) << "the id's field is longer than the note";
}

TEST(RedisRecord, Invariant18_AnUnknownFormatIsRefusedLoudly) {
  std::string record;
  EncodeRecord(Asked(), DefaultTopic("t"), record);
  record[0] = 2;
  JobView view;
  const Status decoded = DecodeJob(record, "", view);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Code::kUnsupportedFormat);
  const auto topic = DecodeTopic("t", EncodeTopic(DefaultTopic("t")) + "more");
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
  const auto read = DecodeTopic("settings", EncodeTopic(topic));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, topic);
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
