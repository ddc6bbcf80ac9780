// What holds for a sink whose receiver is well.
#include "spi/contract/sink_contract.h"

namespace tocsin {
namespace {

TEST_P(SinkContract, ABatchIsConfirmedAndArrivesWhole) {
  Open(kLongTimeout);
  std::vector<ContractJob> jobs = MakeJobs(7);
  jobs[0].payload = std::string("\0\xff\r\n\xc3\x28 a\0", 10);
  jobs[1].payload.clear();
  jobs[2].payload = std::string(world_->payload_max(), 'p');
  jobs[2].payload.back() = '\0';
  jobs[3].headers = {{"trace", "00-4bf9"}, {"content-type", "application/json"}, {"empty", ""}};
  jobs[3].key = "customer 42";
  jobs[4].attempt = 15;
  jobs[5].own_id.clear();
  jobs[6].headers = {{"tocsin-probe", "true"}};
  DeliverAll(jobs, jobs.size());
  AwaitAnswers(kSoon);
  EXPECT_EQ(CountOf(DeliverOutcome::kConfirmed), jobs.size());
  EXPECT_EQ(Received().size(), jobs.size());
  ExpectConfirmedArrived();
}

TEST_P(SinkContract, JobsArriveInTheirOrder) {
  std::optional<Topic> topic = world_->MakeOrderedTopic();
  if (!topic) GTEST_SKIP() << "this receiver does not keep order";
  Open(std::move(*topic), kLongTimeout);
  std::vector<ContractJob> jobs = MakeJobs(300);
  for (ContractJob& job : jobs) job.key = "one";
  std::vector<std::string> ids;
  for (const ContractJob& job : jobs) ids.push_back(job.Id());
  DeliverAll(std::move(jobs), 40);
  AwaitAnswers(kSoon);
  std::vector<std::string> arrived;
  for (const ReceivedJob& job : Received()) arrived.push_back(job.id);
  EXPECT_EQ(arrived, ids);
}

TEST_P(SinkContract, TenThousandJobsAreConfirmed) {
  constexpr size_t kJobs = 10'000;
  Open(kLongTimeout);
  DeliverAll(MakeJobs(kJobs), 1000);
  AwaitAnswers(kSoon);
  EXPECT_EQ(CountOf(DeliverOutcome::kConfirmed), kJobs);
  EXPECT_EQ(Received().size(), kJobs);
  ExpectConfirmedArrived();
}

TEST_P(SinkContract, WhatIsRefusedForGoodIsSaidWithAReasonAndHarmsNoOther) {
  Open(kLongTimeout);
  std::vector<ContractJob> jobs = MakeJobs(3);
  if (!world_->MakeRefused(jobs[1])) GTEST_SKIP() << "this receiver refuses nothing for good";
  DeliverAll(std::move(jobs), 3);
  AwaitAnswers(kSoon);
  EXPECT_EQ(sent()[0].delivered.outcome, DeliverOutcome::kConfirmed) << sent()[0].delivered.reason;
  EXPECT_EQ(sent()[1].delivered.outcome, DeliverOutcome::kRefused) << sent()[1].delivered.reason;
  EXPECT_EQ(sent()[2].delivered.outcome, DeliverOutcome::kConfirmed) << sent()[2].delivered.reason;
}

TEST_P(SinkContract, AReceiverThatAsksForADelayIsHeard) {
  constexpr Millis kDelay{7'000};
  Open(kLongTimeout);
  std::vector<ContractJob> jobs = MakeJobs(1);
  if (!world_->MakePostponed(jobs[0], kDelay)) GTEST_SKIP() << "this receiver cannot ask for a delay";
  Deliver(std::move(jobs));
  AwaitAnswers(kSoon);
  EXPECT_EQ(sent()[0].delivered.outcome, DeliverOutcome::kRetry);
  EXPECT_EQ(sent()[0].delivered.delay, kDelay);
}

TEST_P(SinkContract, AJobThatIsTriedAgainArrivesAgain) {
  Open(kLongTimeout);
  std::vector<ContractJob> jobs = MakeJobs(1);
  Deliver(jobs);
  AwaitAnswers(kSoon);
  ++jobs[0].attempt;
  ++jobs[0].token.fence;
  Deliver(jobs);
  AwaitAnswers(kSoon);
  EXPECT_EQ(CountOf(DeliverOutcome::kConfirmed), 2);
  const std::vector<ReceivedJob> received = Received();
  ASSERT_EQ(received.size(), 2);
  EXPECT_EQ(received[0], Expected(sent()[0].job));
  EXPECT_EQ(received[1], Expected(sent()[1].job));
}

TEST_P(SinkContract, WhatIsAnsweredIsLetGo) {
  Open(kLongTimeout);
  DeliverAll(MakeJobs(500), 100);
  AwaitAnswers(kSoon);
  EXPECT_TRUE(world_->RunUntil([this] { return BatchesHeld() == 0; }, kGrace)) << BatchesHeld() << " are held";
}

TEST_P(SinkContract, CloseOfASinkThatWasNeverUsedIsDone) {
  Open(kLongTimeout);
  Close(kGrace);
}

TEST_P(SinkContract, CloseAnswersWhatIsUnderWay) {
  Open(kLongTimeout);
  DeliverAll(MakeJobs(std::min<size_t>(200, in_flight())), 50);
  Close(kSoon);
  EXPECT_TRUE(Answered());
  EXPECT_EQ(CountOf(DeliverOutcome::kRefused), 0);
  ExpectConfirmedArrived();
}

}  // namespace
}  // namespace tocsin
