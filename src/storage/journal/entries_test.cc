#include "storage/journal/entries.h"

#include <gtest/gtest.h>

#include "storage/journal/body.h"

namespace tocsin::journal {
namespace {

constexpr Moment kMoment{FromMs(1'800'000'000'500), FromMs(1'800'000'000'000)};

/// Writes down what it is shown.
class Notes final : public EntryVisitor {
 public:
  void OnPut(const PutEntry& put) override {
    text += fmt::format("put {} {} state {} on {} due {} attempts {}/{} trigger {} fired {} body {};", put.topic,
                        put.uid, static_cast<int>(put.state), static_cast<int>(put.timeline), ToMs(put.due),
                        put.attempts, put.max_attempts, static_cast<int>(put.trigger), put.fired, put.body.size());
    if (put.details == nullptr) return;
    text += fmt::format("reason {} left {} events {} finished {} due {};", put.details->reason, put.details->count_left,
                        put.details->events.size(), put.details->finished, ToMs(put.details->finished_due));
    if (put.details->HasTimes()) {
      text += fmt::format("attempt {} ended {};", ToMs(put.details->last_attempt), ToMs(put.details->ended));
    }
  }
  void OnMove(const MoveEntry& move) override {
    text += fmt::format("move {} {} state {} on {} due {} attempts {} fired {} either {} reason {};", move.topic,
                        move.uid, static_cast<int>(move.state), static_cast<int>(move.timeline), ToMs(move.due),
                        move.attempts, move.fired, move.either, move.reason);
    if (move.last_attempt != Time{}) text += fmt::format("attempt {};", ToMs(move.last_attempt));
  }
  void OnCount(const CountEntry& count) override {
    text += fmt::format("count {} {} event {} left {};", count.topic, count.uid, count.event, count.left);
  }
  void OnEnd(const EndEntry& end) override {
    text += fmt::format("end {} {} how {};", end.topic, end.uid, static_cast<int>(end.how));
    if (end.last_attempt != Time{}) text += fmt::format("attempt {};", ToMs(end.last_attempt));
  }
  void OnTopic(uint32_t number, const Topic& topic) override {
    text += fmt::format("topic {} {};", number, topic.name);
    topics.push_back(topic);
  }
  void OnDropTopic(uint32_t number) override { text += fmt::format("drop {};", number); }
  void OnUids(Uid used) override { text += fmt::format("uids {};", used); }

  std::string text;
  std::vector<Topic> topics;
};

std::string Body(std::string_view payload) {
  const NewJob job{.id = "own", .payload = payload};
  std::string body(BodySize(job), '\0');
  EncodeBody(job, body.data());
  return body;
}

std::string Everything() {
  static const std::string body = Body("payload");
  Details details{.reason = "reason",
                  .count_left = 3,
                  .finished = true,
                  .finished_due = FromMs(99),
                  .finished_timeline = Timeline::kUtc};
  details.events.Insert(1);
  details.events.Insert(2);
  std::string out;
  EncodePut(out, {.topic = 1, .uid = 10, .due = kMoment.steady + Millis(5), .max_attempts = 4, .body = body}, kMoment);
  EncodePut(out,
            {.topic = 2,
             .uid = 11,
             .state = State::kDone,
             .due = kNever,
             .attempts = 2,
             .max_attempts = 3,
             .trigger = Trigger::kEither,
             .fired = true,
             .details = &details,
             .body = body},
            kMoment);
  EncodeMove(out,
             {.topic = 300,
              .uid = 12,
              .state = State::kDead,
              .timeline = Timeline::kUtc,
              .due = kMoment.utc - Millis(7),
              .attempts = 9,
              .fired = true,
              .either = true,
              .reason = "why"},
             kMoment);
  EncodeCount(out, {4, 13, 0xABCDEF, 6});
  EncodeEnd(out, {5, 14, EntryType::kCancelled}, kMoment);
  EncodeUids(out, 77);
  EncodeDropTopic(out, 8);
  return out;
}

TEST(Entries, ComeBackInOrder) {
  Notes notes;
  ASSERT_TRUE(DecodeEntries(Everything(), kMoment, notes));
  EXPECT_EQ(notes.text,
            "put 1 10 state 0 on 1 due 1800000000005 attempts 0/4 trigger 0 fired false body 20;"
            "put 2 11 state 3 on 1 due 9223372036854775807 attempts 2/3 trigger 2 fired true body 20;"
            "reason reason left 3 events 2 finished true due 99;"
            "move 300 12 state 2 on 0 due 1800000000493 attempts 9 fired true either true reason why;"
            "count 4 13 event 11259375 left 6;end 5 14 how 5;uids 77;drop 8;");
}

TEST(Entries, TimesComeBackWithTheirJobs) {
  const std::string body = Body("payload");
  Details details;
  details.last_attempt = kMoment.steady - Millis(70'000);
  std::string out;
  const PutEntry put{.topic = 1, .uid = 10, .due = kMoment.steady, .details = &details, .body = body};
  EncodePut(out, put, kMoment);
  details.ended = kMoment.steady - Millis(3);
  EncodePut(out, put, kMoment);
  details.last_attempt = Time{};
  EncodePut(out, put, kMoment);
  EncodeMove(out, {.topic = 1, .uid = 12, .due = kMoment.steady, .last_attempt = kMoment.steady - Millis(9)}, kMoment);
  EncodeEnd(out, {1, 13, EntryType::kDone, Millis(5), kMoment.steady - Millis(8)}, kMoment);
  Notes notes;
  ASSERT_TRUE(DecodeEntries(out, kMoment, notes));
  const std::string put_text =
      "put 1 10 state 0 on 1 due 1800000000000 attempts 0/0 trigger 0 fired false body 20;"
      "reason  left 0 events 0 finished false due 9223372036854775807;";
  EXPECT_EQ(notes.text, put_text + "attempt 1799999930000 ended 0;" +                  //
                            put_text + "attempt 1799999930000 ended 1799999999997;" +  //
                            put_text + "attempt 0 ended 1799999999997;" +              //
                            "move 1 12 state 0 on 1 due 1800000000000 attempts 0 fired false either false reason ;"
                            "attempt 1799999999991;"
                            "end 1 13 how 4;attempt 1799999999992;");
  for (size_t size = 0; size < out.size(); ++size) {
    Notes part;
    if (!DecodeEntries(out.substr(0, size), kMoment, part)) continue;
    EXPECT_TRUE(notes.text.starts_with(part.text)) << size;
  }
}

TEST(Entries, TopicsComeBackWhole) {
  Topic topic = DefaultTopic("name");
  topic.slots = 16;
  topic.capacity_jobs = 5;
  topic.capacity_bytes = 6;
  topic.count_limit = 7;
  topic.retention = Millis(8);
  topic.paused = true;
  topic.version = 9;
  std::string out;
  EncodeTopic(out, 3, topic);
  Notes notes;
  ASSERT_TRUE(DecodeEntries(out, kMoment, notes));
  EXPECT_EQ(notes.topics, std::vector{topic});
}

Topic PushTopic() {
  Topic topic = DefaultTopic("name");
  topic.delivery = {.sink = "webhook", .settings = {{"in_flight", "7"}, {"url", "https://example.com/hook"}}};
  return topic;
}

TEST(Entries, TopicsThatPushComeBackWithTheirDelivery) {
  std::string out;
  EncodeTopic(out, 3, PushTopic());
  EncodeUids(out, 77);
  Notes notes;
  ASSERT_TRUE(DecodeEntries(out, kMoment, notes));
  EXPECT_EQ(notes.topics, std::vector{PushTopic()});
  EXPECT_EQ(notes.text, "topic 3 name;uids 77;");
  for (size_t size = 1; size < out.size() - 9; ++size) {
    EXPECT_FALSE(DecodeEntries(std::string_view(out).substr(0, size), kMoment, notes)) << size;
  }
}

// The bytes that programs wrote which knew no sinks.
TEST(Entries, ATopicWrittenBeforeThereWereSinksIsPulledFrom) {
  const std::string before("\x07\x03\x04name\x08\x00\x00\xb0\xea\x01\x10\xe8\x07\x80\xdd\xdb\x01\x01\x00\x00\x05", 24);
  Notes notes;
  ASSERT_TRUE(DecodeEntries(before, kMoment, notes));
  Topic expected = DefaultTopic("name");
  expected.version = 5;
  EXPECT_EQ(notes.topics, std::vector{expected});
  std::string now;
  EncodeTopic(now, 3, expected);
  EXPECT_EQ(now, before) << "and those programs read it, as long as no topic pushes";
}

// What a program writes that has one setting more, and what it reads of one that has not.
TEST(Entries, ASettingThatIsAddedNeedsNoNewFormat) {
  std::vector<TopicSetting> later(TopicSettings().begin(), TopicSettings().end());
  later.push_back(later[0]);  // the new one is another place for the slots
  Topic topic = PushTopic();
  topic.slots = 64;
  std::string out;
  EncodeTopic(out, 3, topic, later);
  Notes notes;
  ASSERT_TRUE(DecodeEntries(out, kMoment, notes, later));
  EXPECT_EQ(notes.topics, std::vector{topic});
  EXPECT_FALSE(DecodeEntries(out, kMoment, notes)) << "a program that does not know the setting must not drop it";
  std::string before;
  EncodeTopic(before, 3, topic);
  Notes old;
  ASSERT_TRUE(DecodeEntries(before, kMoment, old, later));
  EXPECT_EQ(old.topics, std::vector{topic});
}

// So that the program before reads what it knows, and a prologue of many topics is no longer than it was.
TEST(Entries, SettingsThatHaveTheirDefaultsAreNotWritten) {
  Topic topic = DefaultTopic("name");
  std::string before;
  EncodeTopic(before, 3, topic, TopicSettings().first(10));
  std::string now;
  EncodeTopic(now, 3, topic);
  EXPECT_EQ(now, before);
  topic.alerts.late = Millis(7'000);
  now.clear();
  EncodeTopic(now, 3, topic);
  EXPECT_GT(now.size(), before.size());
  EXPECT_LT(now.size(), before.size() + 8) << "not those behind it";
  Notes notes;
  ASSERT_TRUE(DecodeEntries(now, kMoment, notes));
  EXPECT_EQ(notes.topics, std::vector{topic});
}

TEST(Entries, ADeliveryThatNoStoreWritesIsMalformed) {
  const auto refused = [](const Delivery& delivery) {
    Topic topic = PushTopic();
    topic.delivery = delivery;
    std::string out;
    EncodeTopic(out, 3, topic);
    Notes notes;
    return !DecodeEntries(out, kMoment, notes);
  };
  EXPECT_FALSE(refused(PushTopic().delivery));
  EXPECT_TRUE(refused({.sink = "pigeon", .settings = {}}));
  EXPECT_TRUE(refused({.sink = "webhook", .settings = {}})) << "its url is missing";
  EXPECT_TRUE(refused({.sink = "kafka", .settings = {{"in_flight", "many"}}}));
}

TEST(Entries, WhatIsCutOffIsMalformed) {
  const std::string whole = Everything();
  Notes notes;
  ASSERT_TRUE(DecodeEntries("", kMoment, notes));
  size_t malformed = 0;
  for (size_t size = 1; size < whole.size(); ++size) {
    malformed += !DecodeEntries(std::string_view(whole).substr(0, size), kMoment, notes);
  }
  EXPECT_EQ(malformed, whole.size() - 1 - 6) << "all but the ends of the seven entries";
}

TEST(Entries, WhatNoStoreWritesIsMalformed) {
  const std::string body = Body("");
  const auto refused = [&](PutEntry put) {
    std::string out;
    EncodePut(out, put, kMoment);
    Notes notes;
    return !DecodeEntries(out, kMoment, notes);
  };
  EXPECT_FALSE(refused({.due = kMoment.steady, .body = body}));
  EXPECT_TRUE(refused({.state = State::kLeased, .due = kMoment.steady, .body = body})) << "leases are not stored";
  EXPECT_TRUE(refused({.due = FromMs(-1), .body = body}));
  EXPECT_TRUE(refused({.due = FromMs(int64_t{1} << 60), .body = body})) << "it could not be added to";
  EXPECT_TRUE(refused({.due = kMoment.steady, .body = std::string_view("\x04\x02\x09z", 4)})) << "headers cut off";
  Notes notes;
  EXPECT_FALSE(DecodeEntries("\x7F", kMoment, notes)) << "an unknown type";
}

}  // namespace
}  // namespace tocsin::journal
