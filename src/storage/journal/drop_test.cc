// Topics that are dropped with their jobs: what happens to the others, on a full disk, and at the next start.
#include <gtest/gtest.h>

#include "model/placement.h"
#include "sim/sim_node.h"

namespace tocsin::journal {
namespace {

class DropTest : public testing::Test {
 protected:
  static constexpr uint32_t kShards = 2;

  static Options TwoShards() {
    Options options = SimNode::SmallOptions();
    options.shards = kShards;
    return options;
  }

  void SetUp() override { ASSERT_TRUE(node_.Open()); }

  Moment Now() { return node_.clock().Now(); }

  void Put(const std::string& topic) {
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      node_.store(shard).PutTopic(DefaultTopic(topic), [](const Status& done) { ASSERT_TRUE(done); });
    }
  }
  /// To the slot that the shard serves, also after a restart.
  SubmitOutcome Submit(uint32_t shard, const std::string& topic, size_t count, Millis delay, size_t bytes = 10) {
    const Placement placement{kShards};
    const std::string payload(bytes, 'x');
    const uint32_t slot = placement.OffsetOf(placement.HomeOf(topic), shard);
    const std::vector<NewJob> jobs(count, NewJob{.delay = delay, .payload = payload, .slot = slot});
    SubmitOutcome last = SubmitOutcome::kOverloaded;
    node_.store(shard).Submit(topic, jobs, Now(), [&](const Result<std::vector<Submitted>>& done) {
      ASSERT_TRUE(done);
      last = done->back().outcome;
    });
    node_.Pump();
    return last;
  }
  SettleOutcome SettleOne(const std::string& topic, SettleKind kind, std::string_view reason = {}) {
    SettleOutcome outcome = SettleOutcome::kStale;
    node_.store(0).Claim(topic, {1}, std::chrono::hours(1), Now(), [&](Result<JobBatch> batch) {
      ASSERT_TRUE(batch);
      ASSERT_EQ(batch->jobs.size(), 1U);
      const Settlement settlement{.token = batch->jobs[0].token, .kind = kind, .delay = Millis(0), .reason = reason};
      node_.store(0).Settle(topic, {&settlement, 1}, Now(), [&](Result<std::vector<SettleOutcome>> done) {
        ASSERT_TRUE(done);
        outcome = done->front();
      });
      node_.Pump();
    });
    return outcome;
  }
  uint64_t JobsOf(uint32_t shard, const std::string& topic) {
    const auto figures = node_.store(shard).FindFigures(topic);
    return figures ? figures->scheduled + figures->leased + figures->dead : 0;
  }

  /// Until the disk has no room except for changes that end jobs.
  void FillDiskExceptForEnds(const std::string& topic) {
    node_.disk().SetQuota(node_.disk().BytesUsed());
    const Journal& journal = node_.node().journal();
    for (int i = 0; journal.has_room(); ++i) {
      ASSERT_LT(i, 1'000);
      Submit(0, topic, 1, std::chrono::hours(1), 10'000);
    }
    const std::string reason(kReasonBytesMax, 'r');
    for (int i = 0; journal.has_room_for_changes(); ++i) {
      ASSERT_LT(i, 1'000);
      ASSERT_NE(SettleOne(topic, SettleKind::kNack, reason), SettleOutcome::kOverloaded);
    }
  }

  /// Until the disk has no room even for these.
  void FillDisk(const std::string& topic) {
    ASSERT_NO_FATAL_FAILURE(FillDiskExceptForEnds(topic));
    const Journal& journal = node_.node().journal();
    for (int i = 0; journal.has_room_for_ends(); ++i) {
      ASSERT_LT(i, 1'000);
      ASSERT_EQ(SettleOne(topic, SettleKind::kAck), SettleOutcome::kOk);
    }
    ASSERT_EQ(SettleOne(topic, SettleKind::kAck), SettleOutcome::kOverloaded);
  }

  SimNode node_{TwoShards()};
};

// Once the drop answered an error if the disk was full: on one shard, while another had written it. At the next start
// the jobs of the first were gone too.
TEST_F(DropTest, OnAFullDiskEveryShardDropsTheTopicAndOthersKeepTheirJobs) {
  for (const std::string topic : {"kept", "gone"}) Put(topic);
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    ASSERT_EQ(Submit(shard, "kept", 1'000, Millis(0)), SubmitOutcome::kAccepted);
    ASSERT_EQ(Submit(shard, "gone", 200, Millis(0)), SubmitOutcome::kAccepted);
  }
  ASSERT_NO_FATAL_FAILURE(FillDisk("kept"));
  const uint64_t kept[] = {JobsOf(0, "kept"), JobsOf(1, "kept")};
  int dropped = 0;
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    node_.store(shard).DropTopic("gone", [&](const Status& done) {
      EXPECT_TRUE(done) << done.error().message;
      ++dropped;
    });
  }
  node_.Pump();
  ASSERT_EQ(dropped, 2);
  for (const bool full : {true, true, false}) {
    if (!full) node_.disk().SetQuota(UINT64_MAX);
    ASSERT_TRUE(node_.CloseAndOpen());
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      EXPECT_EQ(JobsOf(shard, "kept"), kept[shard]) << shard;
      EXPECT_FALSE(node_.store(shard).FindFigures("gone"));
    }
  }
  EXPECT_EQ(Submit(0, "kept", 1, Millis(0)), SubmitOutcome::kAccepted);
}

// Another shard has refused the change, because the disk became full.
TEST_F(DropTest, AFullDiskHasRoomToPutSettingsBack) {
  Put("t");
  ASSERT_EQ(Submit(0, "t", 1'000, Millis(0)), SubmitOutcome::kAccepted);
  Topic topic = node_.store(0).FindFigures("t")->topic;
  const auto put = [&](auto method, uint32_t max_attempts) {
    ++topic.version;
    topic.max_attempts = max_attempts;
    Status status;
    (node_.store(0).*method)(topic, [&](const Status& done) { status = done; });
    node_.Pump();
    return status;
  };
  ASSERT_TRUE(put(&Store::PutTopic, 7));
  ASSERT_NO_FATAL_FAILURE(FillDiskExceptForEnds("t"));
  EXPECT_EQ(put(&Store::PutTopic, 8).error().code, Code::kStorageFull);
  EXPECT_TRUE(put(&Store::PutBackTopic, 3));
  ASSERT_TRUE(node_.CloseAndOpen());
  EXPECT_EQ(node_.store(0).FindFigures("t")->topic, topic);
}

TEST_F(DropTest, OneWalkErasesTheJobsOfAllDroppedTopics) {
  constexpr int kKept = 64;  // so that no block of jobs can be skipped
  constexpr int kDropped = 300;
  constexpr size_t kRounds = 20;
  constexpr size_t kJobs = 32;
  const auto name = [](int i) { return fmt::format("t{}", i); };
  for (int i = 0; i < kKept + kDropped; ++i) Put(name(i));
  for (size_t round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kKept; ++i) Submit(0, name(i), kJobs, std::chrono::hours(1));
    for (int i = 0; i < kDropped; i += kRounds) Submit(0, name(kKept + i), 1, std::chrono::hours(1));
    for (int i = static_cast<int>(round); i < kDropped; i += kRounds) {
      Submit(0, name(kKept + i), 1, std::chrono::hours(1));
    }
  }
  const auto advance = [&] {
    bool more = false;
    node_.store(0).Advance(Now(), 2000, [&](const Result<Advanced>& done) { more = done && done->more; });
    node_.Pump();
    return more;
  };
  const auto drop = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      for (uint32_t shard = 0; shard < kShards; ++shard) {
        node_.store(shard).DropTopic(name(kKept + i), [](const Status& done) { ASSERT_TRUE(done); });
      }
    }
    node_.Pump();
  };
  const uint64_t before = node_.node().memory_bytes();
  drop(0, kDropped / 2);
  advance();
  drop(kDropped / 2, kDropped);  // in the middle of the walk
  int calls = 1;
  while (advance()) ASSERT_LT(++calls, 50) << "of which each looks at 8192 jobs";
  EXPECT_LT(node_.node().memory_bytes(), before);
  for (int i = 0; i < kKept; ++i) ASSERT_EQ(JobsOf(0, name(i)), kRounds * kJobs);
  ASSERT_TRUE(node_.CloseAndOpen());
  EXPECT_EQ(node_.node().jobs_recovered(), kKept * kRounds * kJobs);
  EXPECT_EQ(node_.node().names(), static_cast<size_t>(kKept));
}

TEST_F(DropTest, TopicsWhoseJobsAreStillThereTakeMemory) {
  constexpr int kTopics = 1'000;
  Put("kept");
  const uint64_t before = node_.node().memory_bytes();
  for (int i = 0; i < kTopics; ++i) {
    const std::string name = fmt::format("t{}", i);
    Put(name);
    Submit(0, name, 1, std::chrono::hours(1));
    node_.store(0).DropTopic(name, [](const Status& done) { ASSERT_TRUE(done); });
    node_.store(1).DropTopic(name, [](const Status& done) { ASSERT_TRUE(done); });
  }
  EXPECT_GT(node_.node().memory_bytes(), before + kTopics * sizeof(TopicState));
}

}  // namespace
}  // namespace tocsin::journal
