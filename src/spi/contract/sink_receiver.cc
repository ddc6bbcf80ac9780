// What holds while the receiver is down, hangs, or dies.
#include "spi/contract/sink_contract.h"

namespace tocsin {
namespace {

TEST_P(SinkContract, AReceiverThatIsDownAtTheStartMeansRetryInTime) {
  const Millis timeout = world_->short_timeout();
  world_->KillReceiver();
  Open(timeout);
  DeliverAll(MakeJobs(std::min<size_t>(20, in_flight())), 10);
  AwaitAnswers(timeout + kGrace);
  EXPECT_EQ(CountOf(DeliverOutcome::kRetry), sent().size());
  ASSERT_TRUE(world_->StartReceiver());
  AwaitHealth();
  ExpectConfirmedArrived();
}

TEST_P(SinkContract, AReceiverThatIsKilledHasWhatItConfirmed) {
  Open(world_->short_timeout());
  AwaitHealth();
  const size_t healthy = CountOf(DeliverOutcome::kConfirmed);
  const size_t batch = std::min<size_t>(100, in_flight());
  // One batch is surely confirmed, the next ones are under way when the receiver dies.
  DeliverAll(MakeJobs(batch), batch);
  ASSERT_TRUE(world_->RunUntil([&] { return CountOf(DeliverOutcome::kConfirmed) > healthy; }, kSoon));
  while (sent().size() < 5 * batch && !HasFatalFailure()) DeliverAll(MakeJobs(batch), batch);
  world_->KillReceiver();
  AwaitAnswers(world_->short_timeout() + kGrace);
  EXPECT_EQ(CountOf(DeliverOutcome::kRefused), 0);
  ASSERT_TRUE(world_->StartReceiver());
  AwaitHealth();
  ExpectConfirmedArrived();
}

TEST_P(SinkContract, AReceiverThatHangsMeansRetryAfterTheTimeout) {
  const Millis timeout = world_->short_timeout();
  Open(timeout);
  AwaitHealth();
  const size_t before = sent().size();
  world_->HangReceiver();
  DeliverAll(MakeJobs(std::min<size_t>(20, in_flight())), 10);
  AwaitAnswers(timeout + kGrace);
  EXPECT_EQ(CountOf(DeliverOutcome::kRetry), sent().size() - before);
  world_->ResumeReceiver();  // what it says of those jobs now is too late: they have their answers
  AwaitHealth();
  ExpectConfirmedArrived();
}

TEST_P(SinkContract, ASinkWorksAgainAfterEachOutage) {
  const Millis timeout = world_->short_timeout();
  Open(timeout);
  AwaitHealth();
  for (int i = 0; i < 2; ++i) {
    world_->KillReceiver();
    EXPECT_EQ(DeliverOne(timeout + kGrace).delivered.outcome, DeliverOutcome::kRetry);
    ASSERT_TRUE(world_->StartReceiver());
    AwaitHealth();
  }
  ExpectConfirmedArrived();
}

TEST_P(SinkContract, CloseIsDoneThoughTheReceiverHangs) {
  Open(kLongTimeout);
  AwaitHealth();
  world_->HangReceiver();
  DeliverAll(MakeJobs(std::min<size_t>(20, in_flight())), 10);
  Close(kGrace);  // far below the time-out of the jobs
  EXPECT_TRUE(Answered());
  world_->ResumeReceiver();
  RunFor(Millis(100));
  ExpectConfirmedArrived();
}

TEST_P(SinkContract, CloseIsDoneThoughTheReceiverIsDown) {
  world_->KillReceiver();
  Open(kLongTimeout);
  DeliverAll(MakeJobs(std::min<size_t>(20, in_flight())), 10);
  Close(kGrace);
  EXPECT_TRUE(Answered());
  EXPECT_EQ(CountOf(DeliverOutcome::kRetry), sent().size());
  ASSERT_TRUE(world_->StartReceiver());
}

}  // namespace
}  // namespace tocsin
