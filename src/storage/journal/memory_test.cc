// Memory stays within memory_limit: whatever becomes of the jobs that fill it, they do not take more than before.
#include <gtest/gtest.h>

#include "sim/sim_node.h"

namespace tocsin::journal {
namespace {

class MemoryTest : public testing::Test {
 protected:
  static constexpr uint64_t kLimit = 16 << 20;
  static constexpr uint64_t kMost = kLimit * 9 / 8;
  static constexpr size_t kBatch = 1'000;

  void SetUp() override {
    ASSERT_TRUE(node_.Open());
    topic_.name = "t";
    topic_.backoff_base = topic_.backoff_max = std::chrono::hours(1);
    Put();
  }

  static Options Limited() {
    Options options = SimNode::SmallOptions();
    options.segment_bytes = 1 << 20;
    options.memory_limit_bytes = kLimit;
    return options;
  }

  Moment Now() { return node_.clock().Now(); }
  uint64_t Memory() { return node_.node().memory_bytes(); }
  TopicFigures Figures() { return *node_.store().FindFigures("t"); }

  void Put() {
    node_.store().PutTopic(topic_, [](const Status& done) { ASSERT_TRUE(done); });
    node_.Pump();
  }

  /// The smallest jobs that there are, until there is no memory for more.
  void Fill() {
    const std::vector<NewJob> jobs(kBatch);
    for (bool full = false; !full;) {
      node_.store().Submit("t", jobs, Now(), [&](const Result<std::vector<Submitted>>& done) {
        ASSERT_TRUE(done);
        full = done->back().outcome == SubmitOutcome::kOverCapacity;
      });
      node_.Pump();
      ASSERT_LT(Figures().accepted, 10'000'000U);
    }
    node_.clock().Advance(Millis(1));
    Advance();
    ASSERT_LE(Memory(), kMost);
    ASSERT_GT(Figures().ready, kLimit / 200);
  }

  void Advance() {
    for (bool more = true; more;) {
      node_.store().Advance(Now(), kBatch, [&](const auto& advanced) { more = advanced && advanced->more; });
      node_.Pump();
    }
  }

  /// Claims every job, and hands each batch to `then`.
  void ClaimAll(Millis lease, const std::function<void(const JobBatch&)>& then) {
    for (bool more = true; more;) {
      node_.store().Claim("t", {kBatch}, lease, Now(), [&](Result<JobBatch> batch) {
        ASSERT_TRUE(batch);
        more = !batch->jobs.empty();
        then(*batch);
      });
      node_.Pump();
    }
  }

  void Settle(const JobBatch& batch, const Settlement& how) {
    std::vector<Settlement> settlements(batch.jobs.size(), how);
    for (size_t i = 0; i < settlements.size(); ++i) settlements[i].token = batch.jobs[i].token;
    node_.store().Settle("t", settlements, Now(), [](const auto& done) { ASSERT_TRUE(done); });
  }

  SimNode node_{Limited()};
  Topic topic_;
};

TEST_F(MemoryTest, LeasesThatExpireTakeNoMore) {
  ASSERT_NO_FATAL_FAILURE(Fill());
  const uint64_t jobs = Figures().ready;
  ClaimAll(Millis(1'000), [](const JobBatch&) {});
  EXPECT_EQ(Figures().leased, jobs);
  EXPECT_LE(Memory(), kMost);
  node_.clock().Advance(Millis(1'001));
  Advance();
  EXPECT_EQ(Figures().expired, jobs);
  EXPECT_EQ(Figures().scheduled, jobs);
  EXPECT_LE(Memory(), kMost);
}

TEST_F(MemoryTest, ReasonsOfNacksTakeNoMore) {
  ASSERT_NO_FATAL_FAILURE(Fill());
  const uint64_t jobs = Figures().ready;
  ClaimAll(Millis(100'000),
           [&](const JobBatch& batch) { Settle(batch, {.kind = SettleKind::kNack, .reason = "a short reason"}); });
  EXPECT_EQ(Figures().nacked, jobs);
  EXPECT_EQ(Figures().scheduled, jobs);
  EXPECT_LE(Memory(), kMost);
}

TEST_F(MemoryTest, ALimitThatIsReachedIsLoggedAndSoIsItsEnd) {
  testing::internal::CaptureStderr();
  Fill();
  node_.store().Submit("t", std::vector<NewJob>(3), Now(), [](const auto&) {});
  node_.Pump();
  const std::string begun = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(begun, '\n'), 1);
  EXPECT_TRUE(begun.contains(" warning memory_limit state=begin used_bytes=")) << begun;
  testing::internal::CaptureStderr();
  ClaimAll(Millis(100'000), [&](const JobBatch& batch) { Settle(batch, {.kind = SettleKind::kAck}); });
  Advance();
  const std::string ended = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(ended, '\n'), 1);
  EXPECT_TRUE(ended.contains(" warning memory_limit state=end lasted_ms=")) << ended;
}

TEST_F(MemoryTest, JobsThatEndAreRetainedAsLongAsThereIsMemory) {
  topic_.retention = std::chrono::hours(1);
  Put();
  ASSERT_NO_FATAL_FAILURE(Fill());
  const uint64_t jobs = Figures().ready;
  uint64_t most = 0;
  ClaimAll(Millis(100'000), [&](const JobBatch& batch) {
    Settle(batch, {.kind = SettleKind::kAck});
    most = std::max(most, Memory());
  });
  EXPECT_EQ(Figures().acked, jobs);
  EXPECT_LE(most, kMost);
  size_t retained = 0;
  std::string cursor;
  do {
    node_.store().List("t", OfState(State::kDone), cursor, {10'000}, Now(), [&](const Result<Page>& page) {
      ASSERT_TRUE(page);
      retained += page->jobs.jobs.size();
      cursor = page->cursor;
    });
  } while (!cursor.empty());
  EXPECT_GT(retained, 0U);
  EXPECT_LT(retained, jobs);
  ASSERT_TRUE(node_.CloseAndOpen());
  Advance();
  EXPECT_LE(Memory(), kMost);
}

/// The promise of docs/performance.md. bench/operate_bench.py measures the same with the whole program.
TEST(PendingJobMemory, AJobWithAPayloadOf128BytesTakes220AtMost) {
  constexpr size_t kBatch = 1'000;
  constexpr size_t kFrom = 200'000;  // fewer would pay for chunks of some mebibytes that are nearly empty
  constexpr size_t kJobs = 300'000;
  constexpr uint64_t kMostEach = 220;
  // memory_limit is compared with more: with room for a lease of each job, which is taken when a consumer gets the job.
  constexpr uint64_t kLeaseRoom = sizeof(Lease);
  Options options = SimNode::SmallOptions();
  options.segment_bytes = 4 << 20;
  SimNode node(options);
  ASSERT_TRUE(node.Open());
  node.store().PutTopic(DefaultTopic("t"), [](const Status& done) { ASSERT_TRUE(done); });
  node.Pump();
  // The fixed part: the topic.
  const uint64_t fixed = node.node().memory_bytes();
  const std::string payload(128, 'x');
  std::vector<NewJob> jobs(kBatch);
  for (size_t submitted = 0; submitted < kJobs;) {
    for (size_t i = 0; i < kBatch; ++i) {
      jobs[i].payload = payload;
      jobs[i].delay = std::chrono::hours(1) + Millis((submitted + i) * 82'800 / (kJobs / 1'000));  // over a day
    }
    node.store().Submit("t", jobs, node.clock().Now(), [](const auto& done) { ASSERT_TRUE(done); });
    node.Pump();
    submitted += kBatch;
    if (submitted < kFrom || submitted % 10'000 != 0) continue;
    const uint64_t held = node.node().memory_bytes() - fixed - submitted * kLeaseRoom;
    EXPECT_LE(held, submitted * kMostEach) << held / submitted << " bytes for each of " << submitted;
  }
  ASSERT_EQ(node.store().FindFigures("t")->scheduled, kJobs);
  EXPECT_GT(node.node().memory_bytes(), fixed + kJobs * payload.size());
}

}  // namespace
}  // namespace tocsin::journal
