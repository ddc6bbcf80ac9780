#include "outbox/row.h"

#include <gmock/gmock.h>

namespace tocsin::outbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr Time kCreated = FromMs(1'763'596'800'123);

class RowTest : public testing::Test {
 protected:
  RowTest() {
    entry_.row = {.id = 7, .op = "submit", .topic = "orders", .payload = "close A-1", .created = kCreated};
    entry_.row.payload_bytes = entry_.row.payload.size();
  }

  Status Read(Millis ahead = Millis(0)) { return Decode(entry_, rules_, ahead); }
  /// What is wrong with the row.
  std::string Fault() {
    const Status read = Read();
    return read ? "nothing" : read.error().message;
  }

  Rules rules_{.identity = "7f3a"};
  Entry entry_;
  Row& row_ = entry_.row;
};

TEST_F(RowTest, ThreeColumnsAreEnough) {
  row_.delay_ms = 1'800'000;
  const Status read = Read();
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(entry_.cancel);
  EXPECT_EQ(entry_.job.payload, "close A-1");
  EXPECT_EQ(entry_.job.id, "outbox-7f3a-7-1763596800123");
  EXPECT_EQ(entry_.job.on_conflict, OnConflict::kKeep);
  EXPECT_EQ(entry_.job.trigger, Trigger::kTime);
}

TEST_F(RowTest, ADelayCountsFromTheInsertAndIsNeverTooShort) {
  row_.delay_ms = 5'000;
  ASSERT_TRUE(Read());
  EXPECT_EQ(entry_.job.timeline, Timeline::kUtc);
  EXPECT_EQ(entry_.job.due, kCreated + Millis(5'001));
}

TEST_F(RowTest, ADelayFollowsTheClockOfTheNode) {
  row_.delay_ms = 5'000;
  ASSERT_TRUE(Read(Millis(-3'600'000)));
  EXPECT_EQ(entry_.job.due, kCreated + Millis(5'001) - Millis(3'600'000));
}

TEST_F(RowTest, ADelayCountsFromThePickUpWithAVirtualClock) {
  rules_.from_pick_up = true;
  row_.delay_ms = 5'000;
  ASSERT_TRUE(Read(Millis(77)));
  EXPECT_EQ(entry_.job.timeline, Timeline::kSteady);
  EXPECT_EQ(entry_.job.delay, Millis(5'000));
}

TEST_F(RowTest, AMomentIsTakenAsItIs) {
  row_.due_ms = ToMs(kCreated) + 60'000;
  ASSERT_TRUE(Read(Millis(-3'600'000)));
  EXPECT_EQ(entry_.job.timeline, Timeline::kUtc);
  EXPECT_EQ(entry_.job.due, kCreated + Millis(60'000));
}

TEST_F(RowTest, ARowThatWaitedForDaysIsDueAtOnce) {
  row_.due_ms = ToMs(kCreated);
  ASSERT_TRUE(Read());
  EXPECT_EQ(entry_.job.past, PastDue::kFire);
}

TEST_F(RowTest, WithoutATimeItIsDueAtOnce) {
  ASSERT_TRUE(Read());
  EXPECT_EQ(entry_.job.timeline, Timeline::kSteady);
  EXPECT_EQ(entry_.job.delay, Millis(0));
}

TEST_F(RowTest, AJobMayHaveAnIdAKeyAndHeaders) {
  row_.job_id = "A-1";
  row_.job_key = "customer-9";
  row_.headers = R"({"trace": "7f", "tenant": "Zürich"})";
  ASSERT_TRUE(Read());
  EXPECT_EQ(entry_.job.id, "A-1");
  EXPECT_EQ(entry_.job.key, "customer-9");
  EXPECT_EQ(entry_.job.on_conflict, OnConflict::kReject);
  EXPECT_THAT(entry_.headers, ElementsAre(Pair("trace", "7f"), Pair("tenant", "Zürich")));
  ASSERT_EQ(entry_.job.headers.size(), 2U);
  EXPECT_EQ(entry_.job.headers[1].value, "Zürich");
}

TEST_F(RowTest, AJobMayWaitForEvents) {
  row_.event_count = 3;
  ASSERT_TRUE(Read());
  EXPECT_EQ(entry_.job.trigger, Trigger::kCount);
  EXPECT_EQ(entry_.job.count, 3U);
}

TEST_F(RowTest, AJobMayWaitForEventsOrAMoment) {
  row_.event_count = 3;
  row_.delay_ms = 5'000;
  ASSERT_TRUE(Read());
  EXPECT_EQ(entry_.job.trigger, Trigger::kEither);
}

TEST_F(RowTest, ACancelNamesItsJob) {
  row_.op = "cancel";
  row_.job_id = "A-1";
  row_.job_key = "customer-9";
  ASSERT_TRUE(Read());
  EXPECT_TRUE(entry_.cancel);
  EXPECT_EQ(entry_.ref.id, "A-1");
  EXPECT_EQ(entry_.ref.key, "customer-9");
}

TEST_F(RowTest, ACancelWithoutAnIdIsRefused) {
  row_.op = "cancel";
  EXPECT_EQ(Fault(), "a cancel needs job_id");
}

TEST_F(RowTest, AnotherOpIsRefused) {
  row_.op = "delete";
  EXPECT_EQ(Fault(), "op is delete: it is submit or cancel");
}

TEST_F(RowTest, ATopicOfOthersIsRefused) {
  rules_.prefix = "shop.";
  EXPECT_EQ(Fault(), "topic is orders: the server's outbox.prefix allows topics that begin with shop.");
  row_.topic = "shop.orders";
  EXPECT_EQ(Fault(), "nothing");
}

TEST_F(RowTest, WhatIsOutOfRangeIsRefused) {
  row_.topic = "";
  EXPECT_THAT(Fault(), HasSubstr("topic"));
  row_.topic = "orders";
  row_.delay_ms = -1;
  EXPECT_THAT(Fault(), HasSubstr("delay is -1 ms: the range is 0 to"));
  row_.delay_ms = 1;
  row_.due_ms = 1;
  EXPECT_THAT(Fault(), HasSubstr("both delay_ms and due_ms"));
  row_.delay_ms = std::nullopt;
  row_.due_ms = 1'763'596'800;
  EXPECT_THAT(Fault(), HasSubstr("it looks like seconds"));
  row_.due_ms = std::nullopt;
  row_.event_count = 0;
  EXPECT_EQ(Fault(), "event_count is 0: the range is 1 to 100000");
  row_.event_count = std::nullopt;
  row_.payload_bytes = (1 << 20) + 1;
  EXPECT_EQ(Fault(), "payload has 1048577 bytes: the most is 1048576");
  row_.payload_bytes = 0;
  row_.job_id = std::string(257, 'x');
  EXPECT_THAT(Fault(), HasSubstr("id"));
}

TEST_F(RowTest, HeadersThatAreNoObjectOfTextsAreRefused) {
  row_.headers = "{";
  EXPECT_THAT(Fault(), HasSubstr("headers is not JSON"));
  row_.headers = "[\"a\"]";
  EXPECT_THAT(Fault(), HasSubstr("headers is not an object of JSON"));
  row_.headers = R"({"a": 1})";
  EXPECT_EQ(Fault(), "the value of the header a is not a text");
  row_.headers = R"({"a": {"b": {"c": "d"}}})";
  EXPECT_THAT(Fault(), HasSubstr("headers is not JSON"));
  row_.headers = R"({"tocsin-token": "x"})";
  EXPECT_THAT(Fault(), HasSubstr("tocsin-"));
}

TEST_F(RowTest, TooManyHeadersAreNotEvenCopied) {
  std::string many = "{";
  for (int i = 0; i < 1'000; ++i) many += fmt::format(R"("h{}": "x", )", i);
  row_.headers = many + R"("last": 1})";
  EXPECT_EQ(Fault(), "headers has 1001 entries: the most is 32");
  EXPECT_TRUE(entry_.headers.empty());
}

}  // namespace
}  // namespace tocsin::outbox
