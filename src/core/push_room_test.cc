// The memory of jobs on their way to receivers: topics share it, and wait for it.
#include <set>

#include "core/push_test.h"
#include "spi/push_memory.h"

namespace tocsin {
namespace {

constexpr size_t kMax = 1 << 20;
constexpr size_t kLarge = 10'000;

class PushRoomTest : public PushTest {
 protected:
  PushRoomTest() : PushTest({.limit = 0, .most = kMax, .least = kMax}) {}

  void SubmitLarge(const std::string& topic, size_t jobs, size_t bytes = kLarge) {
    const std::string payload(bytes, 'x');
    ASSERT_TRUE(node.Submit(topic, std::vector<NewJob>(jobs, NewJob{.payload = payload}), 0));
  }
};

INSTANTIATE_TEST_SUITE_P(Shards, PushRoomTest, testing::Combine(testing::Values(1, 3), testing::Bool()), PushTestName);

TEST_P(PushRoomTest, SilentReceiversStayWithinItAndLeaveRoomToOthers) {
  sinks.script = [](const TestSinks::Job& job) -> std::optional<Delivered> {
    if (job.topic == "well") return kYes;
    return std::nullopt;
  };
  constexpr size_t kTopics = 30;
  constexpr size_t kJobs = 20;
  for (size_t i = 0; i < kTopics; ++i) {
    Put(Pushed(fmt::format("silent-{}", i)));
    SubmitLarge(fmt::format("silent-{}", i), kJobs);
  }
  node.Pass(Millis(1'000));
  EXPECT_GT(push_memory.bytes(), kMax / 2);
  EXPECT_LE(push_memory.bytes(), kMax / 4 * 3);
  EXPECT_LT(sinks.jobs.size(), kMax / kLarge) << "the others stay in the store";
  EXPECT_EQ(FiguresOf("silent-29").nacked, 0U);

  Put(Pushed("well"));
  Submit(200, "well");
  node.Pass(Millis(500));
  EXPECT_EQ(FiguresOf("well").acked, 200U) << "it finds a little room, and then has some of its own";
  SubmitLarge("well", 200);
  node.Pass(Millis(500));
  EXPECT_EQ(FiguresOf("well").acked, 400U);

  for (size_t round = 0; sinks.under_way > 0; ++round) {
    ASSERT_LT(round, kTopics * kJobs);
    AnswerAll(kYes);
    EXPECT_LE(push_memory.bytes(), kMax);
    node.Pass(Millis(50));
  }
  EXPECT_EQ(sinks.jobs.size(), 400 + kTopics * kJobs) << "each of them, once";
  EXPECT_EQ(push_memory.bytes(), 0U);
}

TEST_P(PushRoomTest, OneTopicLeavesHalfOfIt) {
  Put(Pushed("t"));
  SubmitLarge("t", 50);
  AnswerAll(kYes);  // so that it is known to answer soon
  SubmitLarge("t", 500);
  node.Pass(Millis(100));
  EXPECT_GT(push_memory.bytes(), kMax / 4);
  EXPECT_LE(push_memory.bytes(), kMax / 2 + 2 * kLarge);
}

TEST_P(PushRoomTest, AJobThatIsLargerThanAllOfItIsSentAlone) {
  Put(Pushed("t"));
  SubmitLarge("t", 3, kMax);
  for (size_t i = 1; i <= 3; ++i) {
    node.Pass(Millis(100));
    ASSERT_EQ(sinks.jobs.size(), i);
    AnswerAll(kYes);
  }
  node.Pass(Millis(100));
  EXPECT_EQ(FiguresOf().acked, 3U);
  EXPECT_EQ(push_memory.bytes(), 0U);
}

TEST_P(PushRoomTest, ATopicThatWaitsForRoomCanBeChangedAndDropped) {
  for (const char* topic : {"a", "b"}) {
    Put(Pushed(topic));
    SubmitLarge(topic, 2, kMax / 3);
  }
  node.Pass(Millis(100));
  ASSERT_EQ(sinks.jobs.size(), 1U) << "the others find no room";
  sinks.script = [](const TestSinks::Job&) { return kYes; };
  for (const char* topic : {"a", "b"}) Put(Pushed(topic, {{"in_flight", "7"}}));
  node.Pass(Millis(10'000));
  EXPECT_EQ(FiguresOf("a").acked + FiguresOf("b").acked, 4U);
  EXPECT_EQ(push_memory.bytes(), 0U);
}

// As librdkafka does while its brokers are away: it keeps what a sink has sent that was closed since.
TEST_P(PushRoomTest, JobsThatASinkKeepsKeepTheirRoom) {
  sinks.keep_batches = sinks.closes_unsent = true;
  Put(Pushed("t"));
  SubmitLarge("t", 20);
  constexpr size_t kJobBytes = 1 << 10;  // as PushRoom counts
  size_t kept = 0;
  for (int change = 0; change < 20; ++change) {
    node.Pass(Millis(2'000));
    std::set<const JobBatch*> batches;
    kept = 0;
    for (const TestSinks::Job& job : sinks.jobs) {
      if (!batches.insert(job.batch.get()).second) continue;
      for (const JobView& view : job.batch->jobs) kept += kJobBytes + 2 * view.payload.size();
    }
    ASSERT_GE(push_memory.bytes(), kept) << "change " << change;
    ASSERT_LE(push_memory.bytes(), kMax) << "change " << change;
    Put(Pushed("t", {{"rate", fmt::format("{}", 10'000 + change)}}));
  }
  EXPECT_GT(kept, 20 * (kJobBytes + 2 * kLarge)) << "some of them twice";
  sinks.keep_batches = false;
  for (TestSinks::Job& job : sinks.jobs) {
    if (job.answered) job.batch = nullptr;
  }
  sinks.script = [](const TestSinks::Job&) { return kYes; };
  AnswerAll(kYes);
  node.Pass(Millis(10'000));
  EXPECT_EQ(FiguresOf().acked, 20U);
  EXPECT_EQ(push_memory.bytes(), 0U);
}

TEST(PushMemoryTest, JobsInMemoryLeaveLessOfIt) {
  std::atomic<uint64_t> jobs = 0;
  PushMemory memory({.limit = 8'000, .most = 4'000, .least = 1'000});
  memory.CountJobs(jobs);
  const auto room = [&] {
    PushShare share{.bytes = 0, .prompt = true};
    PushShare first{.bytes = 0, .prompt = true};
    EXPECT_TRUE(memory.Take(1, first));  // the first has room in any case
    size_t bytes = 0;
    while (memory.Take(1, share)) ++bytes;
    memory.Give(bytes, share);
    memory.Give(1, first);
    return 2 * bytes;  // it leaves half to others
  };
  EXPECT_NEAR(static_cast<double>(room()), 4'000, 2);
  jobs = 6'000;
  EXPECT_NEAR(static_cast<double>(room()), 2'000, 2);
  jobs = 8'000;
  EXPECT_NEAR(static_cast<double>(room()), 1'000, 2);
  jobs = 80'000;
  EXPECT_NEAR(static_cast<double>(room()), 1'000, 2);
}

}  // namespace
}  // namespace tocsin
