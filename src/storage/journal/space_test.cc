// The disk follows what is live: old segments are emptied by copying forward, whatever passes through.
#include <random>

#include <gtest/gtest.h>

#include "sim/sim_node.h"

namespace tocsin::journal {
namespace {

class SpaceTest : public testing::Test {
 protected:
  explicit SpaceTest(uint64_t segment_bytes = SimNode::SmallOptions().segment_bytes) : node_(With(segment_bytes)) {}

  static Options With(uint64_t segment_bytes) {
    Options options = SimNode::SmallOptions();
    options.segment_bytes = segment_bytes;
    return options;
  }

  void SetUp() override {
    ASSERT_TRUE(node_.Open());
    Topic topic;
    topic.name = "t";
    topic.backoff_base = topic.backoff_max = Millis(0);
    topic.max_attempts = 1000;
    node_.store().PutTopic(topic, [](Status) {});
    node_.Pump();
  }

  void Submit(size_t count, Millis delay, size_t bytes = 200) {
    const std::string payload(bytes, 'x');
    std::vector<NewJob> jobs(count);
    for (NewJob& job : jobs) {
      job.delay = delay;
      job.payload = payload;
    }
    node_.store().Submit("t", jobs, node_.clock().Now(), [&](Result<std::vector<Submitted>> result) {
      ASSERT_TRUE(result);
      for (const Submitted& each : *result) ASSERT_EQ(each.outcome, SubmitOutcome::kAccepted);
    });
    Settle();
  }

  void ClaimAll(SettleKind kind, std::string_view reason = {}) {
    for (bool more = true; more;) {
      node_.store().Claim("t", {SIZE_MAX}, Millis(1000), node_.clock().Now(), [&](Result<JobBatch> batch) {
        ASSERT_TRUE(batch);
        more = batch->more;
        std::vector<Settlement> settlements;
        for (const JobView& job : batch->jobs) {
          settlements.push_back({.token = job.token, .kind = kind, .reason = reason});
        }
        node_.store().Settle("t", settlements, node_.clock().Now(), [](Result<std::vector<SettleOutcome>>) {});
      });
    }
    Settle();
  }

  void Settle() {
    int calls = 0;
    for (bool more = true; more;) {
      ASSERT_LT(++calls, 10'000);
      const size_t before = node_.node().journal().pending_bytes();
      node_.store().Advance(node_.clock().Now(), 1000, [&](Result<Advanced> advanced) { more = advanced->more; });
      const size_t written = node_.node().journal().pending_bytes() - before;
      advance_bytes_ += written;
      advance_bytes_max_ = std::max(advance_bytes_max_, written);
      node_.Pump();
    }
    node_.Pump();
  }

  /// What the jobs take in the journal, at least.
  uint64_t LiveBytes() {
    constexpr uint64_t kPutBytes = 20;  // of a put without texts
    const TopicFigures figures = node_.store().Topics()[0];
    return figures.bytes + (figures.scheduled + figures.dead) * kPutBytes;
  }
  /// Of small files there are always a few: the last, the prepared, what the span allows, and two in reserve.
  uint64_t Allowed() {
    return std::max(7 * node_.options().segment_bytes, 3 * LiveBytes()) + node_.options().segment_bytes;
  }

  /// A file that is made gets a higher number in its name than all before it.
  uint64_t HighestName() {
    uint64_t highest = 0;
    const auto names = node_.disk().List(node_.options().folder);
    EXPECT_TRUE(names);
    for (const std::string& name : *names) {
      if (name.ends_with(".segment")) highest = std::max<uint64_t>(highest, std::stoull(name));
    }
    return highest;
  }

  SimNode node_;
  size_t advance_bytes_ = 0;      // what all calls of Advance wrote
  size_t advance_bytes_max_ = 0;  // and one of them
};

TEST_F(SpaceTest, ThreeTimesTheLiveBytesAreEnough) {
  Submit(20'000, std::chrono::hours(24 * 365));
  EXPECT_GT(3 * LiveBytes(), 100 * node_.options().segment_bytes);
  for (int i = 0; i < 200; ++i) {
    Submit(500, Millis(0));
    ClaimAll(SettleKind::kAck);
    ASSERT_LE(node_.disk().BytesUsed(), Allowed()) << "round " << i;
  }
  EXPECT_EQ(node_.store().Topics()[0].scheduled, 20'000U) << "and a job far ahead pins nothing but itself";
  ASSERT_TRUE(node_.CloseAndOpen());
  EXPECT_EQ(node_.store().Topics()[0].recovered, 20'000U);
}

TEST_F(SpaceTest, AStreamOfJobsUsesItsSegmentsAgain) {
  const auto round = [&] {
    Submit(200, Millis(0));
    ClaimAll(SettleKind::kAck);
  };
  for (int i = 0; i < 20; ++i) round();
  const uint64_t begun = node_.store().Topics()[0].acked;
  const uint64_t made = HighestName();
  for (int i = 0; i < 200; ++i) round();
  EXPECT_EQ(node_.store().Topics()[0].acked - begun, 40'000U);
  EXPECT_LE(HighestName() - made, 30U) << "to make a segment is to write it full of zeros";
}

TEST_F(SpaceTest, RetriesTakeNoSpaceForGood) {
  Submit(1000, Millis(0));
  for (int i = 0; i < 300; ++i) {
    ClaimAll(SettleKind::kNack);
    ASSERT_LE(node_.disk().BytesUsed(), Allowed()) << "round " << i;
  }
}

TEST_F(SpaceTest, LongReasonsOfDeadJobsAreLiveToo) {
  Topic topic = node_.store().Topics()[0].topic;
  topic.max_attempts = 1;
  node_.store().PutTopic(topic, [](Status) {});
  Submit(2000, Millis(0));
  // Settle ends only when there is nothing left to copy forward: counted too low, they would be copied for ever.
  ClaimAll(SettleKind::kNack, std::string(1024, 'r'));
  EXPECT_EQ(node_.store().Topics()[0].dead, 2000U);
  ASSERT_TRUE(node_.CloseAndOpen());
  Settle();
  EXPECT_EQ(node_.store().Topics()[0].dead, 2000U);
}

class LargeJobsTest : public SpaceTest {
 protected:
  LargeJobsTest() : SpaceTest(8 << 20) {}
};

TEST_F(LargeJobsTest, ATurnCopiesAMebibyteForward) {
  constexpr size_t kLarge = 256 << 10;
  Submit(28, std::chrono::hours(24 * 365), kLarge);
  for (int i = 0; i < 20; ++i) {
    Submit(10, Millis(0), kLarge);
    ClaimAll(SettleKind::kAck);
  }
  EXPECT_EQ(node_.store().Topics()[0].scheduled, 28U);
  EXPECT_GT(advance_bytes_, 28 * kLarge) << "the segment that held them is not emptied";
  EXPECT_LT(advance_bytes_max_, (1 << 20) + 2 * kLarge);
}

TEST_F(LargeJobsTest, EventsThatWereCountedSinceAPutAreCopiedInStepsToo) {
  constexpr size_t kCounting = 24;
  constexpr size_t kEvents = 10'000;
  constexpr size_t kBytes = kEvents * sizeof(uint64_t);  // of a job, as it is copied
  std::vector<std::string> ids;
  for (size_t i = 0; i < kCounting; ++i) ids.push_back(std::to_string(i));
  std::vector<NewJob> jobs;
  for (const std::string& id : ids) jobs.push_back({.id = id, .trigger = Trigger::kCount, .count = 2 * kEvents});
  node_.store().Submit("t", jobs, node_.clock().Now(), [](const auto& done) { ASSERT_TRUE(done); });
  for (size_t i = 0; i < kEvents; ++i) {
    const std::string event = std::to_string(i);
    std::vector<CountEvent> events;
    for (const std::string& id : ids) events.push_back({.job = {id, {}}, .event = event});
    node_.store().Count("t", events, node_.clock().Now(), [](const auto& done) { ASSERT_TRUE(done); });
    if (i % 1000 == 0) node_.Pump();
  }
  for (int i = 0; i < 20; ++i) {
    Submit(10, Millis(0), 256 << 10);
    ClaimAll(SettleKind::kAck);
  }
  EXPECT_EQ(node_.store().Topics()[0].scheduled, kCounting);
  EXPECT_GT(advance_bytes_, kCounting * kBytes) << "the segment that held them is not emptied";
  EXPECT_LT(advance_bytes_max_, (1 << 20) + 2 * kBytes);
}

TEST_F(SpaceTest, NamesOfDroppedTopicsAreForgotten) {
  for (int i = 0; i < 20'000; ++i) {
    const std::string name = fmt::format("{:0>200}", i);
    node_.store().PutTopic(DefaultTopic(name), [](Status) {});
    node_.store().DropTopic(name, [](Status) {});
    if (i % 100 == 0) Settle();
    ASSERT_LE(node_.node().names(), 1U) << "of t";
    ASSERT_LE(node_.disk().BytesUsed(), Allowed()) << "round " << i;
  }
  Settle();
  ASSERT_TRUE(node_.CloseAndOpen());
  EXPECT_EQ(node_.store().Topics().size(), 1U);
  EXPECT_EQ(node_.node().names(), 1U);
  // As many more, so that what the first ones left would be carried on.
  for (int i = 0; i < 20'000; ++i) {
    const std::string name = fmt::format("{:1>200}", i);
    node_.store().PutTopic(DefaultTopic(name), [](Status) {});
    node_.store().DropTopic(name, [](Status) {});
    if (i % 100 == 0) Settle();
  }
  Settle();
  EXPECT_LE(node_.disk().BytesUsed(), Allowed());
  EXPECT_EQ(node_.node().names(), 1U);
}

TEST_F(SpaceTest, WhatHasEndedGivesItsSpaceBack) {
  Submit(20'000, Millis(0));
  const uint64_t before = node_.disk().BytesUsed();
  ClaimAll(SettleKind::kAck);
  Submit(100, Millis(0));
  EXPECT_LT(node_.disk().BytesUsed(), before / 4);
}

}  // namespace
}  // namespace tocsin::journal
