// Disks that fail and disks that fill up. After a failed write or sync nothing is acknowledged, the answer says why,
// and what was acknowledged before is there after a restart. A full disk refuses new jobs and nothing else, and takes
// jobs again as soon as there is room.
#include <iostream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/script.h"

namespace tocsin::sim {
namespace {

/// Everything answers with the error, and nothing with ok.
std::string StillAnswersOk(ScriptRun& run) {
  if (!run.node().open()) return "";
  std::string wrong;
  const Topic topic = DefaultTopic("plain");
  for (const Operation& operation :
       {PutTopic(topic), Submit("plain", {OwnedJob{}}), Claim("plain", 1, Millis(0)), Amend("plain", {{.id = "id1"}}),
        Count("plain", {{.id = "id1", .event = "e"}}), Sweep("plain", SweepKind::kRedrive, 10), DropTopic("plain")}) {
    std::optional<Reply> got;
    operation.run(run.side(), run.node().clock().Now(), [&](Reply reply) { got = std::move(reply); });
    run.node().Pump();
    if (!got) wrong = operation.text + " was not answered after a failure";
    if (got && got->ok) wrong = operation.text + " was ok after a failure";
  }
  return wrong;
}

class FailedOperation : public testing::TestWithParam<SimOp> {};

TEST_P(FailedOperation, LosesNothingAcknowledged) {
  const Script script = MakeScript(3, 200);
  ScriptRun dry(script);
  dry.Run();
  ASSERT_EQ(dry.wrong(), "");
  const uint64_t calls = dry.disk().Calls(GetParam());
  ASSERT_GT(calls, 0);
  for (uint64_t nth = 1; nth <= calls; ++nth) {
    ScriptRun run(script);
    run.disk().FailNth(GetParam(), nth);
    run.Run();
    ASSERT_EQ(run.wrong(), "") << "failure " << nth;
    const bool failed = run.node().open() && run.node().node().journal().failed();
    const std::string error = failed ? run.node().node().journal().error().message : run.error();
    ASSERT_THAT(error, testing::HasSubstr("injected fault")) << "failure " << nth;
    ASSERT_EQ(StillAnswersOk(run), "") << "failure " << nth;
    for (const Survive choice : {Survive::kNothing, Survive::kSectors, Survive::kAll}) {
      ASSERT_EQ(
          CheckSurvivors(script, run, run.disk().Survivors(choice, nth), run.node().clock().Now(), run.side().tokens),
          "")
          << "failure " << nth << ", of the unsynced data survives " << static_cast<int>(choice);
    }
  }
  std::cout << calls << " failures\n";
}

INSTANTIATE_TEST_SUITE_P(Disk, FailedOperation,
                         testing::Values(SimOp::kSync, SimOp::kWrite, SimOp::kCreate, SimOp::kSyncDir),
                         [](const auto& info) {
                           switch (info.param) {
                             case SimOp::kSync:
                               return "Sync";
                             case SimOp::kWrite:
                               return "Write";
                             case SimOp::kCreate:
                               return "Create";
                             default:
                               return "SyncDir";
                           }
                         });

class FullDisk : public testing::Test {
 protected:
  static constexpr uint64_t kSegment = 64 << 10;

  FullDisk() {
    EXPECT_TRUE(node_.Open());
    side_.store = &node_.store();
    Topic topic = DefaultTopic("jobs");
    topic.max_attempts = 1'000;
    EXPECT_TRUE(Do(PutTopic(topic)).ok);
    node_.disk().SetQuota(12 * kSegment);
  }

  Reply Do(const Operation& operation) {
    std::optional<Reply> got;
    operation.run(side_, node_.clock().Now(), [&](Reply reply) { got = std::move(reply); });
    node_.Pump();
    return got.value_or(Reply{false, "no answer"});
  }

  SubmitOutcome SubmitOne(const std::string& id) {
    std::optional<SubmitOutcome> outcome;
    const std::string payload(700, 'p');
    const NewJob job{.id = id, .payload = payload};
    node_.store().Submit("jobs", {&job, 1}, node_.clock().Now(), [&](const auto& outcomes) {
      ASSERT_TRUE(outcomes) << outcomes.error().message;
      outcome = outcomes->at(0).outcome;
    });
    node_.Pump();
    return outcome.value_or(SubmitOutcome::kConflict);
  }

  /// Submits until the disk is full. How many were taken.
  size_t Fill() {
    for (size_t taken = 0;; ++taken) {
      std::string id = fmt::format("job{}", next_id_++);
      const SubmitOutcome outcome = SubmitOne(id);
      if (outcome == SubmitOutcome::kAccepted) {
        live_.insert(std::move(id));
        continue;
      }
      EXPECT_EQ(outcome, SubmitOutcome::kStorageFull);
      return taken;
    }
  }

  /// Claims up to `max` and settles them.
  size_t Settle(size_t max, SettleKind kind) {
    Do(Advance());
    JobBatch batch;
    node_.store().Claim("jobs", {max}, Millis(0), node_.clock().Now(), [&](Result<JobBatch> claimed) {
      ASSERT_TRUE(claimed) << claimed.error().message;
      batch = std::move(*claimed);
    });
    std::vector<Settlement> settlements;
    for (const JobView& job : batch.jobs) {
      settlements.push_back({.token = job.token, .kind = kind, .delay = Millis(0)});
      if (kind == SettleKind::kAck) live_.erase(job.Id());
    }
    size_t settled = 0;
    node_.store().Settle("jobs", settlements, node_.clock().Now(), [&](const auto& outcomes) {
      ASSERT_TRUE(outcomes) << outcomes.error().message;
      for (const SettleOutcome outcome : *outcomes) settled += outcome == SettleOutcome::kOk;
    });
    node_.Pump();
    EXPECT_EQ(settled, batch.jobs.size());
    return settled;
  }

  /// What is stored is what was accepted and has not ended.
  void CheckLive() {
    std::set<std::string> stored;
    std::string cursor;
    do {
      node_.store().List("jobs", OfState(State::kScheduled), cursor, {1'000}, node_.clock().Now(),
                         [&](Result<Page> page) {
                           ASSERT_TRUE(page);
                           for (const JobView& job : page->jobs.jobs) stored.insert(job.Id());
                           cursor = page->cursor;
                         });
    } while (!cursor.empty());
    EXPECT_EQ(stored, live_);
  }

  void Reopen() {
    const Status opened = node_.CloseAndOpen();
    ASSERT_TRUE(opened) << opened.error().message;
    node_.Pump();
    side_.store = &node_.store();
  }

  SimNode node_;
  Side side_;
  std::set<std::string> live_;
  uint64_t next_id_ = 0;
};

TEST_F(FullDisk, RefusesNewJobsAndNothingElse) {
  ASSERT_GT(Fill(), 100);
  EXPECT_EQ(SubmitOne("another"), SubmitOutcome::kStorageFull);
  EXPECT_TRUE(Do(Amend("jobs", {{.id = *live_.begin()}})).ok);
  live_.erase(live_.begin());
  EXPECT_TRUE(Do(Amend("jobs", {{.id = *live_.begin(), .kind = AmendKind::kReschedule}})).ok);
  EXPECT_EQ(Settle(50, SettleKind::kAck), 50);
  CheckLive();
  ASSERT_LE(node_.disk().BytesUsed(), 12 * kSegment);
}

TEST_F(FullDisk, SettlesMoreThanTheLastSegmentTakes) {
  Fill();
  const uint64_t before = node_.node().journal().figures().bytes_written.load();
  for (int i = 0; node_.node().journal().figures().bytes_written.load() - before < kSegment * 3 / 2; ++i) {
    node_.clock().Advance(Millis(1));
    ASSERT_EQ(Settle(1'000, SettleKind::kNack), live_.size()) << i;
  }
  CheckLive();
  Reopen();
  CheckLive();
}

TEST_F(FullDisk, RetriesForeverOnceAFewJobsHaveEnded) {
  Fill();
  Settle(live_.size() / 3, SettleKind::kAck);
  for (int i = 0; i < 300; ++i) {
    node_.clock().Advance(Millis(1));
    ASSERT_EQ(Settle(1'000, SettleKind::kNack), live_.size()) << i;
  }
  CheckLive();
  Reopen();
  CheckLive();
}

TEST_F(FullDisk, RetriesWithoutEndAreRefusedBeforeTheLastRoomIsUsed) {
  Fill();
  bool refused = false;
  for (int i = 0; i < 2'000 && !refused; ++i) {
    node_.clock().Advance(Millis(1));
    Do(Advance());
    JobBatch batch;
    node_.store().Claim("jobs", {1'000}, Millis(5), node_.clock().Now(), [&](Result<JobBatch> claimed) {
      ASSERT_TRUE(claimed) << claimed.error().message;
      batch = std::move(*claimed);
    });
    std::vector<Settlement> settlements;
    for (const JobView& job : batch.jobs) {
      settlements.push_back({.token = job.token, .kind = SettleKind::kNack, .delay = Millis(0)});
    }
    node_.store().Settle("jobs", settlements, node_.clock().Now(), [&](const auto& outcomes) {
      ASSERT_TRUE(outcomes) << outcomes.error().message;
      refused = std::ranges::count(*outcomes, SettleOutcome::kOverloaded) > 0;
    });
    node_.Pump();
  }
  EXPECT_TRUE(refused);
  node_.clock().Advance(Millis(10));  // leases of refused ones expire
  EXPECT_EQ(Settle(50, SettleKind::kAck), 50) << "there is room to end jobs";
  CheckLive();
  Reopen();
  CheckLive();
  EXPECT_EQ(Settle(50, SettleKind::kAck), 50);
  node_.disk().SetQuota(24 * kSegment);
  for (int i = 0; i < 3; ++i) node_.Pump();
  EXPECT_EQ(Settle(50, SettleKind::kNack), 50);
  EXPECT_EQ(SubmitOne("more"), SubmitOutcome::kAccepted);
}

TEST_F(FullDisk, TopicsThatChangeWithoutEndAreRefusedBeforeTheLastRoomIsUsed) {
  Fill();
  Topic topic = DefaultTopic("jobs");
  std::optional<Error> refused;
  for (int i = 0; i < 100'000 && !refused; ++i) {
    topic.paused = i % 2 == 0;
    ++topic.version;
    node_.store().PutTopic(topic, [&](const Status& done) {
      if (!done) refused = done.error();
    });
    node_.Pump();
  }
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, Code::kStorageFull) << refused->message;
  Reopen();
  CheckLive();
}

TEST(FullDiskWithTopics, HasRoomForTheProloguesOfTheNextStarts) {
  journal::Options options = SimNode::SmallOptions();
  options.shards = 8;
  SimNode node(options);
  ASSERT_TRUE(node.Open());
  for (int i = 0; i < 60; ++i) {
    for (uint32_t shard = 0; shard < options.shards; ++shard) {
      node.store(shard).PutTopic(DefaultTopic(fmt::format("topic-{}", i)),
                                 [](const Status& done) { ASSERT_TRUE(done); });
    }
    node.Pump();
  }
  node.disk().SetQuota(node.disk().BytesUsed() + 4 * options.segment_bytes);
  const std::vector<NewJob> jobs(100);
  const auto figures = [&] { return *node.store().FindFigures("topic-7"); };
  for (bool full = false; !full;) {
    node.store().Submit("topic-7", jobs, node.clock().Now(), [&](const Result<std::vector<Submitted>>& done) {
      ASSERT_TRUE(done);
      full = done->back().outcome == SubmitOutcome::kStorageFull;
    });
    node.Pump();
  }
  for (bool refused = false; !refused;) {
    JobBatch batch;
    node.store().Claim("topic-7", {10}, Millis(100'000), node.clock().Now(),
                       [&](Result<JobBatch> claimed) { batch = std::move(*claimed); });
    ASSERT_FALSE(batch.jobs.empty());
    std::vector<Settlement> acks;
    for (const JobView& job : batch.jobs) acks.push_back({.token = job.token});
    node.store().Settle("topic-7", acks, node.clock().Now(), [&](const auto& outcomes) {
      ASSERT_TRUE(outcomes) << outcomes.error().message;
      refused = outcomes->back() == SettleOutcome::kOverloaded;
    });
    node.Pump();
  }
  EXPECT_GT(figures().acked, 500U) << "there is room to end jobs";
  const uint64_t left = figures().accepted - figures().acked;
  for (int i = 0; i < 2; ++i) {
    const Status opened = node.CloseAndOpen();
    ASSERT_TRUE(opened) << opened.error().message;
    node.Pump();
    ASSERT_FALSE(node.node().journal().failed()) << i;
    EXPECT_EQ(node.node().journal().pending_bytes(), 0U);
    EXPECT_EQ(node.node().jobs_recovered(), left);
  }
}

TEST_F(FullDisk, TakesJobsAgainWhenOthersEnd) {
  for (int round = 0; round < 4; ++round) {
    const size_t taken = Fill();
    EXPECT_GT(taken, 100) << round;
    while (live_.size() > 20) ASSERT_GT(Settle(50, SettleKind::kAck), 0);
    for (int i = 0; i < 50; ++i) Do(Advance());
    CheckLive();
  }
}

TEST_F(FullDisk, TakesJobsAgainWhenThereIsMoreRoom) {
  Fill();
  node_.disk().SetQuota(16 * kSegment);
  node_.Pump();
  EXPECT_EQ(SubmitOne("more"), SubmitOutcome::kAccepted);
  live_.insert("more");
  CheckLive();
}

TEST_F(FullDisk, Opens) {
  Fill();
  for (int i = 0; i < 200; ++i) {
    Reopen();
    if (testing::Test::HasFatalFailure()) return;
  }
  CheckLive();
  EXPECT_EQ(SubmitOne("another"), SubmitOutcome::kStorageFull);
  EXPECT_GT(Settle(1'000, SettleKind::kAck), 0);
  for (int i = 0; i < 50; ++i) Do(Advance());
  EXPECT_EQ(SubmitOne("another"), SubmitOutcome::kAccepted);
  node_.CutPower(Survive::kNothing, 1);
  ASSERT_TRUE(node_.Open());
  live_.insert("another");
  CheckLive();
}

}  // namespace
}  // namespace tocsin::sim
