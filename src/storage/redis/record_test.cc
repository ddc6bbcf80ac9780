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

constexpr size_t kDueBytes = 7;
constexpr int64_t kDue = 1'800'000'000'000;

std::string Stored(const NewJob& job, int64_t when = kDue) {
  std::string record;
  EncodeRecord(job, DefaultTopic("t"), when, record);
  return record;
}

TEST(RedisRecord, AJobComesBackAsItWasAskedFor) {
  const std::string record = Stored(Asked());
  JobView view;
  ASSERT_TRUE(DecodeJob(1, record, "", view));
  EXPECT_EQ(view.own_id, "own");
  EXPECT_EQ(view.key, "key");
  EXPECT_EQ(view.trigger, Trigger::kEither);
  EXPECT_EQ(view.max_attempts, 7U);
  ASSERT_EQ(view.headers.size(), 2U);
  EXPECT_EQ(view.headers[1].name, "empty");
  EXPECT_EQ(view.headers[1].value, "");
  EXPECT_EQ(view.payload, std::string_view("pay\0load", 8));
  EXPECT_EQ(view.attempt, 0U);
  EXPECT_EQ(view.due, FromMs(kDue));
  ASSERT_TRUE(DecodeJob(1, std::string(7, '\0') + record.substr(7), "", view));
  EXPECT_EQ(view.due, kNever);
}

TEST(RedisRecord, ADelayCountsFromTheTimeInTheSequenceNumber) {
  constexpr int64_t kAccepted = 1'790'000'000'123;
  const uint64_t sequence = static_cast<uint64_t>(kAccepted - 1'577'836'800'000) * 4096 + 4095;
  JobView view;
  ASSERT_TRUE(DecodeJob(sequence, Stored(Asked(), 5000), "", view));
  EXPECT_EQ(view.due, FromMs(kAccepted + 5000));
  ASSERT_TRUE(DecodeJob(sequence, Stored(Asked(), 0), "", view));
  EXPECT_EQ(view.due, FromMs(kAccepted));
}

TEST(RedisRecord, ANoteTellsTheAttemptsTheReasonAndANewTrigger) {
  NewJob job = Asked();
  job.trigger = Trigger::kCount;
  const std::string record = Stored(job);
  JobView view;
  ASSERT_TRUE(DecodeJob(1, record, std::string_view("\0\0\0\0\0\0\0\0\3\4why", 13), view));
  EXPECT_EQ(view.attempt, 3U);
  EXPECT_EQ(view.reason, "why");
  EXPECT_EQ(view.trigger, Trigger::kEither);
}

/// A tail as the scripts write it: last attempt 1'800'000'000'001, since 1'800'000'000'002, 3 extensions.
std::string Tail(std::string_view holder) {
  constexpr std::string_view kNumbers("\x01\xA3\x18\x5C\x50\x01\x01\xA3\x18\x5C\x50\x02\x00\x03", 14);
  return std::string(holder) + std::string(kNumbers) + static_cast<char>(holder.size()) + '\xFF';
}
constexpr std::string_view kNoteHead("\0\0\0\0\0\0\0\0\3\0", 10);

JobView Shown(std::string_view record, std::string_view note, const StoredState& stored) {
  JobView view;
  EXPECT_TRUE(DecodeJob(1, record, note, view));
  ShowState(stored, note, view);
  return view;
}

TEST(RedisRecord, TheTailOfANoteTellsTimesAndTheHolder) {
  const std::string record = Stored(Asked());
  const std::string note = std::string(kNoteHead) + "why" + Tail("ann");
  JobView view = Shown(record, note, {.state = State::kScheduled});
  EXPECT_EQ(view.reason, "why");
  EXPECT_EQ(view.last_attempt, FromMs(kDue + 1));
  EXPECT_EQ(view.attempt, 3U);
  view = Shown(record, note, {.state = State::kLeased, .at = FromMs(kDue + 9), .claim = "1 20 1700000000000 bob"});
  EXPECT_EQ(std::tuple(view.holder, view.leased, view.last_attempt, view.extensions, view.attempt),
            std::tuple("ann", FromMs(kDue + 2), FromMs(kDue + 2), 3U, 4U))
      << "an extended lease has left its claim";
  EXPECT_EQ(view.lease_deadline, FromMs(kDue + 9));
  view = Shown(record, note, {.state = State::kDead, .at = FromMs(kDue + 9)});
  EXPECT_EQ(std::tuple(view.died, view.last_attempt, view.attempt), std::tuple(FromMs(kDue + 9), FromMs(kDue + 1), 3U));
  EXPECT_EQ(std::tuple(view.holder, view.leased, view.finished), std::tuple("", Time{}, Time{}));
  view = Shown(record, note, {.state = State::kDone, .at = FromMs(kDue + 9)});
  EXPECT_EQ(std::tuple(view.finished, view.last_attempt, view.attempt),
            std::tuple(FromMs(kDue + 2), FromMs(kDue + 1), 4U));
}

TEST(RedisRecord, ALeaseThatWasNotExtendedIsToldByItsClaim) {
  const std::string record = Stored(Asked());
  const auto leased = [&](std::string_view note, std::string_view claim) {
    return Shown(record, note, {.state = State::kLeased, .at = FromMs(kDue + 9), .claim = claim});
  };
  const std::string claim = fmt::format("16 2000 {} a b", kDue);
  for (const std::string& note : {std::string(), std::string(kNoteHead)}) {
    const JobView view = leased(note, claim);
    EXPECT_EQ(std::tuple(view.holder, view.leased, view.last_attempt), std::tuple("a b", FromMs(kDue), FromMs(kDue)));
  }
  EXPECT_EQ(leased("", fmt::format("1 2 {} ", kDue)).leased, FromMs(kDue));
  EXPECT_EQ(leased("", fmt::format("1 2 {} ", kDue)).holder, "");
}

TEST(RedisRecord, ACopyKeepsItsPast) {
  NewJob job = Asked();
  job.restored = std::make_shared<Restored>(Restored{
      .dead = true, .attempts = 3, .reason = "why", .created = FromMs(kDue - 5), .last_attempt = FromMs(kDue - 3)});
  const std::string record = Stored(job);
  std::string note = EncodeNote(*job.restored);
  const JobView view = Shown(record, note, {.state = State::kDead, .at = FromMs(kDue - 1)});
  EXPECT_EQ(std::tuple(view.created, view.last_attempt, view.died),
            std::tuple(FromMs(kDue - 5), FromMs(kDue - 3), FromMs(kDue - 1)));
  EXPECT_EQ(std::tuple(view.attempt, view.reason, view.payload),
            std::tuple(3U, "why", std::string_view("pay\0load", 8)));
  EXPECT_EQ(view.headers.size(), 2U) << "the one that tells when it was created is not shown";
  job.restored->last_attempt = {};
  job.restored->reason = "ends as a tail does\xFF";
  note = EncodeNote(*job.restored);
  EXPECT_EQ(Shown(record, note, {.state = State::kDead}).reason, job.restored->reason);
  EXPECT_EQ(EncodeNote({.created = FromMs(kDue)}), "") << "a job without a past needs none";
  EXPECT_NE(EncodeNote({.dead = true}), "") << "scripts rely on that of a dead letter";
}

TEST(RedisRecord, Invariant18_WhatTheProgramBeforeWroteIsRead) {
  const std::string record = Stored(Asked());
  for (const std::string_view claim : {"", "16 2000", "16", " "}) {
    const JobView view = Shown(record, "", {.state = State::kLeased, .at = FromMs(kDue), .claim = claim});
    EXPECT_EQ(std::tuple(view.holder, view.leased, view.attempt), std::tuple("", Time{}, 1U)) << claim;
  }
  const std::string fence = MemberOf(static_cast<uint64_t>(kDue - kYear2020Ms) * kSequencesPerMs + 7);
  const std::string later = fence + std::string(kNoteHead.substr(7)) + "why";
  EXPECT_EQ(Shown(record, later, {.state = State::kLeased}).leased, FromMs(kDue)) << "the fence of a later lease";
  // Reasons that end as a tail does, and are none.
  for (const std::string& reason :
       {std::string("\xFF"), std::string(20, '\xFF'), "why" + std::string(15, '\xFE') + '\xFF'}) {
    EXPECT_EQ(Shown(record, std::string(kNoteHead) + reason, {}).reason, reason);
  }
}

TEST(RedisRecord, WhatIsNotWholeIsRefused) {
  const std::string record = Stored(Asked());
  const size_t before_payload = record.size() - 8;
  for (size_t size = 0; size < before_payload; ++size) {
    JobView view;
    const Status decoded = DecodeJob(1, std::string_view(record).substr(0, size), "", view);
    ASSERT_FALSE(decoded) << size;
    EXPECT_EQ(decoded.error().code, Code::kCorrupt);
  }
  JobView view;
  EXPECT_FALSE(DecodeJob(1, record, "short", view));
}

TEST(RedisRecord, Invariant18_AnUnknownFormatIsRefusedLoudly) {
  std::string record = Stored(Asked());
  record[kDueBytes] = 2;
  JobView view;
  const Status decoded = DecodeJob(1, record, "", view);
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

Topic PushTopic() {
  Topic topic = DefaultTopic("t");
  topic.delivery = {.sink = "webhook",
                    .settings = {{"in_flight", "7"}, {"secret", ""}, {"url", "https://example.com/hook"}}};
  return topic;
}

TEST(RedisRecord, ATopicThatPushesComesBackWithItsDelivery) {
  const std::string text = EncodeTopic(PushTopic());
  const auto read = DecodeTopic("t", text + EncodeBirth(7));
  ASSERT_TRUE(read);
  EXPECT_EQ(static_cast<const Topic&>(*read), PushTopic());
  EXPECT_EQ(read->birth, 7U);
  const size_t numbers = EncodeTopic(DefaultTopic("t")).size();
  EXPECT_EQ(numbers, 11U * 8) << "as before there were sinks";
  for (size_t size = numbers + 1; size < text.size(); ++size) {
    const auto cut = DecodeTopic("t", text.substr(0, size) + EncodeBirth(7));
    ASSERT_FALSE(cut) << size;
    EXPECT_EQ(cut.error().code, Code::kUnsupportedFormat);
  }
}

// What a program writes that has one setting more, and what it reads of one that has not.
TEST(RedisRecord, ASettingThatIsAddedNeedsNoNewFormat) {
  std::vector<TopicSetting> later(TopicSettings().begin(), TopicSettings().end());
  later.push_back(later[0]);  // the new one is another place for the slots
  for (Topic topic : {DefaultTopic("t"), PushTopic()}) {
    topic.slots = 64;
    const std::string text = EncodeTopic(topic, later) + EncodeBirth(7);
    const auto read = DecodeTopic("t", text, later);
    ASSERT_TRUE(read);
    EXPECT_EQ(static_cast<const Topic&>(*read), topic);
    EXPECT_FALSE(DecodeTopic("t", text)) << "a program that does not know the setting must not drop it";
    const auto before = DecodeTopic("t", EncodeTopic(topic) + EncodeBirth(7), later);
    ASSERT_TRUE(before);
    EXPECT_EQ(static_cast<const Topic&>(*before), topic);
  }
}

TEST(RedisRecord, Invariant18_ADeliveryOfALaterProgramIsRefusedLoudly) {
  Topic topic = PushTopic();
  topic.delivery.sink = "pigeon";
  const auto sink = DecodeTopic("t", EncodeTopic(topic) + EncodeBirth(7));
  ASSERT_FALSE(sink);
  EXPECT_EQ(sink.error().code, Code::kUnsupportedFormat);
  topic = PushTopic();
  topic.delivery.settings.emplace("colour", "blue");
  EXPECT_FALSE(DecodeTopic("t", EncodeTopic(topic) + EncodeBirth(7)));
  std::string later = EncodeTopic(PushTopic());
  later[11 * 8] = 3;
  EXPECT_FALSE(DecodeTopic("t", later + EncodeBirth(7))) << "another section";
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
