// No call keeps the shard's thread for long, whatever the ready jobs look like: the loads that once did.
#include <ctime>
#include <iostream>
#include <numeric>

#include <gtest/gtest.h>

#include "sim/sim_node.h"

namespace tocsin::journal {
namespace {

/// Of CPU time, so that a busy machine does not count. Sanitizers make the code ten times slower.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::chrono::milliseconds kTurnMax{50};
#else
constexpr std::chrono::milliseconds kTurnMax{5};
#endif

std::chrono::nanoseconds CpuTime() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

class TurnsTest : public testing::Test {
 protected:
  static constexpr size_t kJobs = 20'000;
  static constexpr size_t kBatch = 5'000;

  void SetUp() override {
    ASSERT_TRUE(node_.Open());
    Topic topic;
    topic.name = "t";
    Turn([&] { node_.store().PutTopic(topic, [](Status) {}); });
    std::vector<NewJob> jobs(kBatch);
    for (size_t submitted = 0; submitted < kJobs; submitted += kBatch) {
      node_.store().Submit("t", jobs, Now(), [&](Result<std::vector<Submitted>> result) {
        ASSERT_TRUE(result);
        for (const Submitted& each : *result) {
          ASSERT_EQ(each.outcome, SubmitOutcome::kAccepted);
          order_.push_back(each.uid);
        }
      });
      node_.Pump();
    }
    node_.clock().Advance(Millis(1));
  }

  static Options LargeSegments() {
    Options options = SimNode::SmallOptions();
    options.segment_bytes = 1 << 20;
    return options;
  }

  Moment Now() { return node_.clock().Now(); }

  void Turn(const std::function<void()>& work) {
    const auto begun = CpuTime();
    work();
    longest_ = std::max(longest_, CpuTime() - begun);
    node_.Pump();
  }

  void Advance() {
    for (bool more = true; more;) {
      Turn([&] {
        node_.store().Advance(Now(), 2000, [&](Result<Advanced> advanced) { more = advanced && advanced->more; });
      });
    }
  }

  JobBatch Claim(Millis lease) {
    JobBatch batch;
    Turn([&] {
      node_.store().Claim("t", {kBatch}, lease, Now(), [&](Result<JobBatch> claimed) { batch = std::move(*claimed); });
    });
    return batch;
  }

  void Settle(const JobBatch& batch, SettleKind kind) {
    std::vector<Settlement> settlements;
    for (const JobView& job : batch.jobs) settlements.push_back({.token = job.token, .kind = kind});
    Turn([&] { node_.store().Settle("t", settlements, Now(), [](Result<std::vector<SettleOutcome>>) {}); });
  }

  void FillDisk() {
    node_.disk().SetQuota(node_.disk().BytesUsed());
    for (int i = 0; node_.node().journal().has_room(); ++i) {
      ASSERT_LT(i, 10'000);
      const NewJob job{.payload = payload_};
      node_.store().Submit("t", {&job, 1}, Now(), [](const auto&) {});
      node_.Pump();
    }
  }

  /// Every job of the beginning is claimed once, in the order of the submits.
  void ExpectOrder() {
    std::vector<Uid> claimed;
    while (claimed.size() < kJobs) {
      const JobBatch batch = Claim(Millis(100'000));
      ASSERT_FALSE(batch.jobs.empty());
      for (const JobView& job : batch.jobs) claimed.push_back(job.uid);
    }
    claimed.resize(kJobs);
    EXPECT_EQ(claimed, order_);
  }

  void TearDown() override { std::cout << fmt::format("longest turn: {} us\n", longest_.count() / 1000); }

  SimNode node_{LargeSegments()};
  const std::string payload_ = std::string(100'000, 'x');
  std::vector<Uid> order_;
  std::chrono::nanoseconds longest_{0};
};

TEST_F(TurnsTest, LeasesThatExpireOnAFullDisk) {
  Advance();
  ASSERT_NO_FATAL_FAILURE(FillDisk());
  for (size_t claimed = 0; claimed < kJobs / 2; claimed += kBatch) Claim(Millis(1000));
  node_.clock().Advance(Millis(1001));
  Advance();
  ASSERT_NO_FATAL_FAILURE(ExpectOrder());
  EXPECT_LE(longest_, kTurnMax);
}

TEST_F(TurnsTest, ATopicThatIsDroppedOnAFullDisk) {
  const std::vector<NewJob> jobs(kBatch, NewJob{.delay = Millis(1'000'000)});
  for (int i = 0; i < 40; ++i) {
    node_.store().Submit("t", jobs, Now(), [](const auto& done) { ASSERT_TRUE(done); });
    node_.Pump();
  }
  Claim(Millis(1));
  ASSERT_NO_FATAL_FAILURE(FillDisk());
  const uint64_t memory = node_.node().memory_bytes();
  Turn([&] { node_.store().DropTopic("t", [](const auto& done) { ASSERT_TRUE(done); }); });
  EXPECT_FALSE(node_.store().FindFigures("t"));
  node_.clock().Advance(Millis(2));
  Advance();
  node_.clock().Advance(Millis(11'000));  // for memory that is spare so long
  Advance();
  EXPECT_LE(longest_, kTurnMax);
  EXPECT_LT(node_.node().memory_bytes(), memory / 2);
  ASSERT_TRUE(node_.CloseAndOpen());
  EXPECT_EQ(node_.node().jobs_recovered(), 0U);
}

TEST_F(TurnsTest, ATopicThatIsMadeAgainWhileItsJobsAreErased) {
  Topic topic;
  topic.name = "t";
  topic.capacity_jobs = kBatch;
  JobBatch leased = Claim(Millis(5));
  ASSERT_EQ(leased.jobs.size(), kBatch);
  Turn([&] { node_.store().DropTopic("t", [](const auto& done) { ASSERT_TRUE(done); }); });
  Turn([&] { node_.store().PutTopic(topic, [](const auto& done) { ASSERT_TRUE(done); }); });
  Settle(leased, SettleKind::kAck);  // stale
  const std::vector<NewJob> jobs(kBatch, NewJob{.delay = Millis(10)});
  Turn([&] {
    node_.store().Submit("t", jobs, Now(), [](const auto& done) {
      ASSERT_TRUE(done);
      for (const Submitted& each : *done) ASSERT_EQ(each.outcome, SubmitOutcome::kAccepted) << "there is room";
    });
  });
  node_.clock().Advance(Millis(10));  // the old leases end before all is erased
  Advance();
  const TopicFigures figures = *node_.store().FindFigures("t");
  EXPECT_EQ(figures.ready, kBatch);
  EXPECT_EQ(figures.scheduled + figures.leased + figures.dead, kBatch);
  EXPECT_EQ(figures.expired, 0U);
  EXPECT_EQ(figures.acked, 0U);
  EXPECT_EQ(Claim(Millis(1000)).jobs.size(), kBatch);
  ASSERT_TRUE(node_.CloseAndOpen());
  EXPECT_EQ(node_.node().jobs_recovered(), kBatch);
  EXPECT_LE(longest_, kTurnMax);
}

TEST_F(TurnsTest, AListingCopiesAFewJobsAtATime) {
  const std::string payload(8'000, 'x');
  const std::vector<NewJob> jobs(500, NewJob{.delay = Millis(1'000'000), .payload = payload});
  Topic topic;
  topic.name = "large";
  node_.store().PutTopic(topic, [](Status) {});
  node_.store().Submit("large", jobs, Now(), [](const auto& done) { ASSERT_TRUE(done); });
  node_.Pump();
  size_t listed = 0;
  std::string cursor;
  do {
    node_.store().List("large", OfState(State::kScheduled), cursor, {10'000}, Now(), [&](Result<Page> page) {
      ASSERT_TRUE(page);
      size_t bytes = 0;
      for (const JobView& job : page->jobs.jobs) bytes += job.payload.size();
      EXPECT_LE(bytes, (256 << 10) + payload.size());
      listed += page->jobs.jobs.size();
      cursor = page->cursor;
    });
  } while (!cursor.empty());
  EXPECT_EQ(listed, jobs.size());
}

// Over jobs of any size a search goes on in the next call before it takes long: the needle is one that string_view
// would look for in quadratic time.
TEST(LargeJobsTurnsTest, ASearchThroughLargePayloads) {
  constexpr size_t kJobs = 20;
  Options options = SimNode::SmallOptions();
  options.segment_bytes = 8 << 20;
  SimNode node(options);
  ASSERT_TRUE(node.Open());
  node.store().PutTopic(DefaultTopic("t"), [](const auto&) {});
  const std::string needle = std::string(200, 'a') + "b";
  std::string payload(1 << 20, 'a');
  for (size_t i = 0; i < kJobs; ++i) {
    // Every fourth has it, across the places where a search pauses and at the very end.
    const std::string id = fmt::format("j{}", i);
    payload.assign(1 << 20, 'a');
    if (i % 4 == 0) payload[i % 8 == 0 ? (64 << 10) + 100 : payload.size() - 1] = 'b';
    const NewJob job{.id = id, .delay = std::chrono::hours(1), .payload = payload};
    node.store().Submit("t", {&job, 1}, node.clock().Now(), [](const auto& done) { ASSERT_TRUE(done); });
    node.Pump();
  }
  std::chrono::nanoseconds longest{0};
  const auto list = [&](const Selector& what) {
    std::vector<std::string> found;
    size_t looked = 0;
    std::string cursor;
    do {
      const auto begun = CpuTime();
      node.store().List("t", what, cursor, {1'000}, node.clock().Now(), [&](Result<Page> page) {
        ASSERT_TRUE(page);
        cursor = page->cursor;
        looked += page->looked;
        for (const JobView& job : page->jobs.jobs) found.emplace_back(job.own_id);
      });
      longest = std::max(longest, CpuTime() - begun);
    } while (!cursor.empty());
    EXPECT_EQ(looked, kJobs) << "each once";
    return found;
  };
  EXPECT_EQ(list({.payload = needle}), (std::vector<std::string>{"j0", "j4", "j8", "j12", "j16"}));
  EXPECT_EQ(list({.payload = "nowhere"}), std::vector<std::string>());
  std::cout << fmt::format("longest turn: {} us\n", longest.count() / 1000);
  EXPECT_LE(longest, kTurnMax);
}

TEST(LargeJobsTurnsTest, APayloadThatChangesInTheMiddleOfItsSearch) {
  Options options = SimNode::SmallOptions();
  options.segment_bytes = 8 << 20;
  SimNode node(options);
  ASSERT_TRUE(node.Open());
  node.store().PutTopic(DefaultTopic("t"), [](const auto&) {});
  const std::string before = std::string(600'000, 'x') + "needle";
  const std::string after = "needle" + std::string(600'000, 'x');
  const NewJob job{.id = "a", .delay = std::chrono::hours(1), .payload = before};
  node.store().Submit("t", {&job, 1}, node.clock().Now(), [](const auto& done) { ASSERT_TRUE(done); });
  node.Pump();
  std::string cursor;
  size_t found = 0;
  for (int calls = 0; calls == 0 || !cursor.empty(); ++calls) {
    ASSERT_LT(calls, 100);
    node.store().List("t", {.payload = "needle"}, cursor, {10}, node.clock().Now(), [&](Result<Page> page) {
      ASSERT_TRUE(page);
      cursor = page->cursor;
      found += page->jobs.jobs.size();
    });
    if (calls > 0) continue;
    ASSERT_NE(cursor, "") << "it takes more than one call";
    const Amendment change{.job = {"a", {}}, .kind = AmendKind::kPayload, .payload = after};
    node.store().Amend("t", {&change, 1}, node.clock().Now(), [](const auto& done) { ASSERT_TRUE(done); });
    node.Pump();
  }
  EXPECT_EQ(found, 1U) << "it matched all the time";
}

// Every kind of selector over many jobs that do not match it, and over jobs that all do.
TEST_F(TurnsTest, ListingsByAnySelector) {
  std::vector<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back(fmt::format("none-{}", i));
  const Selector selectors[] = {
      {},
      OfState(State::kScheduled),
      {.states = StateSet::Ready()},
      {.ids = ids},
      {.id_prefix = "none"},
      {.key = "none"},
      {.header = "none"},
      {.payload = "none"},
      {.reason = "none"},
      {.holder = "none"},
      {.due = {Now().utc + std::chrono::hours(1), std::nullopt}},
      {.attempts_min = 1},
  };
  for (const Selector& what : selectors) {
    std::string cursor;
    size_t looked = 0;
    do {
      Turn([&] {
        node_.store().List("t", what, cursor, {1'000}, Now(), [&](Result<Page> page) {
          ASSERT_TRUE(page);
          cursor = page->cursor;
          looked += page->looked;
        });
      });
    } while (!cursor.empty());
    EXPECT_EQ(looked, kJobs);
  }
  EXPECT_LE(longest_, kTurnMax);
}

TEST_F(TurnsTest, AListingByManyIdsGetsOn) {
  std::vector<std::string> ids;
  for (int i = 0; i < 20'000; ++i) ids.push_back(fmt::format("none-{}", i));
  ids.push_back(UidText(order_.back()));
  std::string cursor;
  size_t found = 0;
  int calls = 0;
  do {
    ASSERT_LT(++calls, 50);
    node_.store().List("t", {.ids = ids}, cursor, {1'000}, Now(), [&](Result<Page> page) {
      ASSERT_TRUE(page);
      cursor = page->cursor;
      found += page->jobs.jobs.size();
    });
  } while (!cursor.empty());
  EXPECT_EQ(found, 1U);
}

// The system takes 100 us to unmap a MiB: a call that ends many large jobs leaves that to the turns after it.
TEST(LargeJobsTurnsTest, ACallThatEndsManyLargeJobs) {
  constexpr size_t kJobs = 60;
  constexpr uint64_t kTurnBytes = 9 << 20;
  Options options = SimNode::SmallOptions();
  options.segment_bytes = 8 << 20;
  SimNode node(options);
  ASSERT_TRUE(node.Open());
  node.store().PutTopic(DefaultTopic("t"), [](const auto&) {});
  const std::string payload(300'000, 'x');
  const NewJob job{.payload = payload};
  const auto now = [&] { return node.clock().Now(); };
  for (size_t i = 0; i < kJobs; ++i) {
    node.store().Submit("t", {&job, 1}, now(), [](const auto& done) { ASSERT_TRUE(done); });
    node.Pump();
  }
  node.clock().Advance(Millis(1));
  bool more = true;
  const auto advance = [&] {
    node.store().Advance(now(), 2000, [&](Result<Advanced> advanced) { more = advanced && advanced->more; });
    node.Pump();
  };
  while (more) advance();
  std::vector<Settlement> settlements;
  for (bool left = true; left;) {
    node.store().Claim("t", {kJobs}, Millis(100'000), now(), [&](Result<JobBatch> batch) {
      EXPECT_LT(batch->jobs.size() * payload.size(), kClaimBytes + payload.size());
      left = batch->more;
      for (const JobView& each : batch->jobs) settlements.push_back({.token = each.token, .kind = SettleKind::kAck});
    });
  }
  ASSERT_EQ(settlements.size(), kJobs);
  const uint64_t full = node.node().memory_bytes();
  node.store().Settle("t", settlements, now(), [](const auto& done) { ASSERT_TRUE(done); });
  node.Pump();
  EXPECT_GT(node.node().memory_bytes() + kTurnBytes, full);
  more = true;
  for (int turns = 0; more; ++turns) {
    ASSERT_LT(turns, 100);
    const uint64_t before = node.node().memory_bytes();
    advance();
    EXPECT_GT(node.node().memory_bytes() + kTurnBytes, before);
  }
  EXPECT_LT(node.node().memory_bytes(), full - kJobs * payload.size());
}

TEST_F(TurnsTest, DeliveriesThatAreReleasedWithoutEnd) {
  Advance();
  const JobBatch held = Claim(Millis(100'000));
  for (int i = 0; i < 3; ++i) {
    const JobBatch first = Claim(Millis(100'000));
    const JobBatch second = Claim(Millis(100'000));
    Settle(first, SettleKind::kRelease);
    Settle(second, SettleKind::kRelease);
  }
  Settle(held, SettleKind::kRelease);
  ASSERT_NO_FATAL_FAILURE(ExpectOrder());
  EXPECT_LE(longest_, kTurnMax);
}

// The jobs with a due time are put back in steps. Between them none is delivered before its time, and jobs with a delay
// are, although they stand among the others.
TEST_F(TurnsTest, ReadyJobsAfterAStepBack) {
  const Time due = Now().utc + Millis(10'000);
  std::vector<NewJob> jobs(kBatch);
  for (size_t i = 0; i < kBatch; ++i) {
    jobs[i].timeline = i % 50 == 0 ? Timeline::kSteady : Timeline::kUtc;
    jobs[i].delay = Millis(10'000);
    jobs[i].due = due + Millis(i % 3);
  }
  for (int i = 0; i < 8; ++i) {
    node_.store().Submit("t", jobs, Now(), [](const auto& done) { ASSERT_TRUE(done); });
    node_.Pump();
  }
  node_.clock().Advance(Millis(20'000));
  Advance();
  ASSERT_NO_FATAL_FAILURE(ExpectOrder());
  node_.clock().Step(-Millis(10'001));
  ASSERT_LT(Now().utc, due);
  size_t delayed = 0;
  bool more = true;
  for (int step = 0; more; ++step) {
    ASSERT_LT(step, 1'000);
    const JobBatch batch = Claim(Millis(100'000));
    for (const JobView& job : batch.jobs) EXPECT_LE(job.due, Now().utc) << "early";
    delayed += batch.jobs.size();
    Turn([&] { node_.store().Advance(Now(), 2000, [&](const auto& advanced) { more = advanced && advanced->more; }); });
  }
  delayed += Claim(Millis(100'000)).jobs.size();
  EXPECT_EQ(delayed, 8 * kBatch / 50);
  EXPECT_EQ(node_.store().Topics()[0].ready, 0U);
  node_.clock().Advance(Millis(10'010));
  Advance();
  size_t on_time = 0;
  for (JobBatch batch = Claim(Millis(100'000)); !batch.jobs.empty(); batch = Claim(Millis(100'000))) {
    on_time += batch.jobs.size();
  }
  EXPECT_EQ(on_time, 8 * (kBatch - kBatch / 50));
  EXPECT_LE(longest_, kTurnMax);
}

TEST_F(TurnsTest, ABatchThatReplacesItsOwnJobs) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < kBatch / 2; ++i) ids.push_back(std::to_string(i));
  std::vector<NewJob> jobs(kBatch);
  for (size_t i = 0; i < kBatch; ++i) {
    jobs[i].id = ids[i % ids.size()];
    jobs[i].on_conflict = OnConflict::kReplace;
  }
  Turn([&] { node_.store().Submit("t", jobs, Now(), [](const auto& done) { ASSERT_TRUE(done); }); });
  EXPECT_EQ(node_.store().Topics()[0].scheduled, kJobs + ids.size());
  EXPECT_LE(longest_, kTurnMax);
}

// One sync may acknowledge thousands of calls, and each answer is encoded and sent.
class ManyAnswersTest : public testing::Test {
 protected:
  static constexpr size_t kCalls = 1'000;
  static constexpr size_t kTurnMax = 128;

  ManyAnswersTest() {
    EXPECT_TRUE(node_.Open());
    node_.store().PutTopic(DefaultTopic("t"), [](const auto&) {});
    node_.Pump();
    for (size_t i = 0; i < kCalls; ++i) Submit();
    EXPECT_TRUE(answered_.empty());
  }

  void Submit() {
    const NewJob job{.delay = std::chrono::hours(1)};
    node_.store().Submit("t", {&job, 1}, node_.clock().Now(), [this, call = calls_++](const auto& done) {
      EXPECT_TRUE(done);
      answered_.push_back(call);
    });
  }
  void ExpectAllInOrder() {
    std::vector<size_t> all(calls_);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(answered_, all);
  }

  SimNode node_;
  std::vector<size_t> answered_;

 private:
  size_t calls_ = 0;
};

TEST_F(ManyAnswersTest, OfOneSyncAreSentInShortTurnsInTheOrderOfTheCalls) {
  size_t longest = 0;
  for (int turn = 0; node_.node().journal().Commit() || node_.loop().Waiting() > 0; ++turn) {
    const size_t before = answered_.size();
    node_.loop().RunOne();
    longest = std::max(longest, answered_.size() - before);
    if (turn < 5) Submit();  // is acknowledged while earlier answers wait for their turn
  }
  EXPECT_LE(longest, kTurnMax);
  ExpectAllInOrder();
}

TEST_F(ManyAnswersTest, AreAllSentBeforeTheStoreIsClosed) {
  while (node_.node().journal().Commit()) {
  }
  node_.loop().RunOne();
  EXPECT_LT(answered_.size(), kCalls);
  EXPECT_TRUE(node_.node().Close());
  ExpectAllInOrder();
  node_.loop().Forget();
}

// Each event is a word in a table: to free the tables of many jobs takes long.
TEST(ManyEventsTest, JobsWithManyCountedEventsEndInShortTurns) {
  constexpr size_t kJobs = 20;
  constexpr size_t kEvents = 20'000;
  constexpr uint64_t kTurnBytes = 2 << 20;
  Options options = SimNode::SmallOptions();
  options.segment_bytes = 8 << 20;
  SimNode node(options);
  ASSERT_TRUE(node.Open());
  node.store().PutTopic(DefaultTopic("t"), [](const auto&) {});
  const auto now = [&] { return node.clock().Now(); };
  std::vector<std::string> ids;
  for (size_t i = 0; i < kJobs; ++i) ids.push_back(fmt::format("job-{}", i));
  for (const std::string& id : ids) {
    const NewJob job{.id = id, .trigger = Trigger::kCount, .count = kCountMax};
    node.store().Submit("t", {&job, 1}, now(), [](const auto& done) { ASSERT_TRUE(done); });
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < kEvents; ++i) names.push_back(std::to_string(i));
  for (const std::string& id : ids) {
    for (size_t from = 0; from < kEvents; from += 10'000) {
      std::vector<CountEvent> events;
      for (size_t i = from; i < from + 10'000; ++i) events.push_back({.job = {.id = id}, .event = names[i]});
      node.store().Count("t", events, now(), [](const auto& done) {
        ASSERT_TRUE(done);
        for (const Counted& each : *done) ASSERT_EQ(each.outcome, CountOutcome::kCounted);
      });
      node.Pump();
    }
  }
  const uint64_t full = node.node().memory_bytes();
  ASSERT_GT(full, kJobs * kEvents * sizeof(uint64_t));
  std::vector<Amendment> cancels;
  for (const std::string& id : ids) cancels.push_back({.job = {.id = id}, .kind = AmendKind::kCancel});
  node.store().Amend("t", cancels, now(), [](const auto& done) {
    ASSERT_TRUE(done);
    for (const Amended& each : *done) ASSERT_EQ(each.outcome, AmendOutcome::kDone);
  });
  node.Pump();
  EXPECT_GT(node.node().memory_bytes() + kTurnBytes, full);
  bool more = true;
  for (int turns = 0; more; ++turns) {
    ASSERT_LT(turns, 1'000);
    const uint64_t before = node.node().memory_bytes();
    node.store().Advance(now(), 2000, [&](Result<Advanced> advanced) { more = advanced && advanced->more; });
    node.Pump();
    EXPECT_GT(node.node().memory_bytes() + kTurnBytes, before);
  }
  EXPECT_LT(node.node().memory_bytes(), full - kJobs * kEvents * sizeof(uint64_t));
}

TEST(ManyTopicsTest, TheyAreMadeKeptAndDroppedInShortTurns) {
  constexpr size_t kTopics = 20'000;
  Options options = SimNode::SmallOptions();
  options.shards = 2;
  options.segment_bytes = 8 << 20;
  options.topics = kTopics;
  SimNode node(options);
  ASSERT_TRUE(node.Open());
  std::chrono::nanoseconds longest{0};
  const auto turn = [&](const std::function<void()>& work) {
    const auto begun = CpuTime();
    work();
    longest = std::max(longest, CpuTime() - begun);
  };
  const auto name = [](size_t i) { return fmt::format("topic-{}", i); };
  const auto ok = [](Result<void> result) { ASSERT_TRUE(result); };
  for (size_t i = 0; i < kTopics; ++i) {
    for (uint32_t shard = 0; shard < 2; ++shard) {
      turn([&] { node.store(shard).PutTopic(DefaultTopic(name(i)), ok); });
    }
    if (i % 1000 == 0) node.Pump();
  }
  // Each segment begins with all of them.
  const std::string payload(1 << 20, 'x');
  const uint64_t before = node.node().journal().last_segment();
  for (int i = 0; node.node().journal().last_segment() < before + 2; ++i) {
    ASSERT_LT(i, 100);
    const NewJob job{.delay = std::chrono::hours(1), .payload = payload};
    turn([&] { node.store(0).Submit(name(7), {&job, 1}, node.clock().Now(), [](const auto&) {}); });
    node.Pump();
  }
  for (size_t i = 0; i < kTopics; i += 2) {
    for (uint32_t shard = 0; shard < 2; ++shard) turn([&] { node.store(shard).DropTopic(name(i), ok); });
    if (i % 1000 == 0) node.Pump();
  }
  EXPECT_LE(longest, kTurnMax);
  const auto begun = CpuTime();
  ASSERT_TRUE(node.CloseAndOpen());
  EXPECT_LE(CpuTime() - begun, std::chrono::seconds(30)) << "not quadratic";
  for (uint32_t shard = 0; shard < 2; ++shard) EXPECT_EQ(node.store(shard).Topics().size(), kTopics / 2);
  EXPECT_EQ(node.node().names(), kTopics / 2);
  EXPECT_GT(node.store(0).FindFigures(name(7))->recovered + node.store(1).FindFigures(name(7))->recovered, 5U);
}

}  // namespace
}  // namespace tocsin::journal
