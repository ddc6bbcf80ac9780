// Contract of Store: find, list, sweep, topics, retention, figures.
#include <algorithm>

#include "spi/contract/store_contract.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_P(StoreContract, FindAnswersEachReferenceInItsPlace) {
  const Submitted own = Accept(Job("own", 5s));
  const Submitted given = Accept(Job({}, 5s));
  const std::string given_id = UidText(given.uid);
  const std::vector<JobRef> refs{{given_id, {}}, {"none", {}}, {"own", {}}, {"own", "key"}, {"own", {}}};
  const auto batch = Await<JobBatch>([&](auto done) { store().Find(kTopic, refs, nullptr, Now(), std::move(done)); });
  ASSERT_TRUE(batch);
  std::vector<Uid> uids;
  for (const JobView& job : batch->jobs) uids.push_back(job.uid);
  EXPECT_THAT(uids, ElementsAre(given.uid, 0U, own.uid, 0U, own.uid));
}

TEST_P(StoreContract, FindShowsTheWholeJob) {
  NewJob asked = Keyed(CountJob("a", 3, Trigger::kEither, 5s), "key");
  asked.headers = {{"h", "v"}};
  asked.max_attempts = 7;
  Accept(asked);
  const JobView view = Find("a", "key");
  EXPECT_EQ(view.own_id, "a");
  EXPECT_EQ(view.key, "key");
  EXPECT_EQ(view.state, State::kScheduled);
  EXPECT_EQ(view.due, Now().utc + 5s);
  EXPECT_EQ(view.trigger, Trigger::kEither);
  EXPECT_EQ(view.count_left, 3U);
  EXPECT_EQ(view.attempt, 0U);
  EXPECT_EQ(view.max_attempts, 7U);
  EXPECT_EQ(view.reason, "");
  ASSERT_EQ(view.headers.size(), 1U);
  EXPECT_EQ(view.headers[0].name, "h");
  EXPECT_EQ(view.headers[0].value, "v");
  EXPECT_EQ(view.payload, "payload");
}

TEST_P(StoreContract, ListPagesThroughEveryState) {
  Set([](Topic& topic) {
    topic.retention = 1h;
    topic.max_attempts = 1;
  });
  std::multiset<std::string> expected[5];
  for (int i = 0; i < 50; ++i) {
    const int kind = i % 5;
    const std::string id = fmt::format("j{}", i);
    Accept(Job(id, kind == 0 || kind == 4 ? 1h : 0ms));
    if (kind == 1) ClaimOne();
    if (kind == 2) EXPECT_EQ(Nack(ClaimOne().token), SettleOutcome::kDead);
    if (kind == 3) EXPECT_EQ(Ack(ClaimOne().token), SettleOutcome::kOk);
    if (kind == 4) EXPECT_EQ(Cancel(id), AmendOutcome::kDone);
    expected[kind].insert(id);
  }
  for (int state = 0; state < 5; ++state) {
    for (const size_t page : {1U, 3U, 10U, 1000U}) {
      EXPECT_EQ(List(static_cast<State>(state), page), expected[state]) << state << " by " << page;
    }
  }
}

TEST_P(StoreContract, ListShowsWhatHasTheStateAllTheTimeOnceWhileOthersChange) {
  for (int i = 0; i < 60; ++i) Accept(Job(fmt::format("j{}", i), i % 3 == 0 ? 1ms : 1h));
  std::multiset<std::string> seen;
  std::string cursor;
  int page_number = 0;
  do {
    const auto page = Await<Page>(
        [&](auto done) { store().List(kTopic, OfState(State::kScheduled), cursor, {7}, Now(), std::move(done)); });
    ASSERT_TRUE(page);
    for (const JobView& job : page->jobs.jobs) seen.insert(job.Id());
    cursor = page->cursor;
    // Between the pages: jobs that are in flux come, go and move; those with i % 3 == 2 are left alone.
    const std::string changed = fmt::format("j{}", 3 * page_number + 1);
    Accept(Job(fmt::format("new{}", page_number), 2h));
    if (page_number % 2 == 0) {
      EXPECT_EQ(Cancel(changed), AmendOutcome::kDone);
    } else {
      EXPECT_EQ(Reschedule(changed, 3h).outcome, AmendOutcome::kDone);
    }
    if (page_number == 3) {
      clock().Advance(1ms);
      Claim(10);
    }
    ASSERT_LT(++page_number, 100);
  } while (!cursor.empty());
  for (int i = 2; i < 60; i += 3) EXPECT_EQ(seen.count(fmt::format("j{}", i)), 1U) << i;
  for (const std::string& id : seen) EXPECT_EQ(seen.count(id), 1U) << id;
}

TEST_P(StoreContract, ListOfAnEmptyStateAndAForeignCursor) {
  EXPECT_THAT(List(State::kDead), IsEmpty());
  Accept(Job("a", 1h));
  const auto page = Await<Page>([&](auto done) {
    store().List(kTopic, OfState(State::kScheduled), "not a cursor", {10}, Now(), std::move(done));
  });
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, Code::kInvalidArgument);
}

TEST_P(StoreContract, ALookupStaysWithinItsRoom) {
  const std::string payload(10'000, 'x');
  Accept(Job("a", 1h, payload));
  Accept(Job("b", 1h, payload));
  const auto find = [this](const std::vector<JobRef>& refs, JobRoom& room) {
    return Await<JobBatch>([&](auto done) { store().Find(kTopic, refs, &room, Now(), std::move(done)); }).value();
  };
  LimitedRoom enough(25'000);
  EXPECT_EQ(find({{"a", {}}, {"b", {}}}, enough).jobs.at(1).payload, payload);
  EXPECT_GE(enough.bytes(), 2 * payload.size());
  LimitedRoom little(15'000);
  const JobBatch none = find({{"a", {}}, {"b", {}}}, little);
  EXPECT_TRUE(none.no_room);
  EXPECT_THAT(none.jobs, IsEmpty());
  const JobBatch one = find({{"b", {}}, {"none", {}}}, little);
  EXPECT_FALSE(one.no_room);
  EXPECT_EQ(one.jobs.at(0).payload, payload);
  EXPECT_EQ(one.jobs.at(1).uid, 0U);
  LimitedRoom nothing(0);
  EXPECT_TRUE(find({{"a", {}}}, nothing).no_room);
  EXPECT_FALSE(find({{"none", {}}}, nothing).no_room);
}

TEST_P(StoreContract, APageStaysWithinItsRoom) {
  const std::string payload(10'000, 'x');
  std::multiset<std::string> ids;
  for (int i = 0; i < 24; ++i) {
    ids.insert(fmt::format("j{}", i));
    Accept(Keyed(Job(fmt::format("j{}", i), 1h, payload), i % 2 == 0 ? "k" : ""));
  }
  std::multiset<std::string> seen;
  std::string cursor;
  for (int pages = 0; pages == 0 || !cursor.empty(); ++pages) {
    ASSERT_LT(pages, 1000);
    LimitedRoom room(35'000);
    const JobMax max{1000, &room};
    const Page page = Await<Page>([&](auto done) {
                        store().List(kTopic, OfState(State::kScheduled), cursor, max, Now(), std::move(done));
                      }).value();
    EXPECT_FALSE(page.jobs.no_room);
    EXPECT_LE(page.jobs.jobs.size(), 3U);
    EXPECT_GE(room.bytes(), page.jobs.jobs.size() * payload.size());
    for (const JobView& job : page.jobs.jobs) seen.insert(job.Id());
    cursor = page.cursor;
  }
  EXPECT_EQ(seen, ids);
}

TEST_P(StoreContract, APageWithoutRoomForTheFirstJobIsEmpty) {
  for (int i = 0; i < 3; ++i) Accept(Job(fmt::format("j{}", i), 1h, std::string(10'000, 'x')));
  const auto list = [this](std::string_view cursor, JobRoom& room) {
    const JobMax max{1000, &room};
    return Await<Page>([&](auto done) {
             store().List(kTopic, OfState(State::kScheduled), cursor, max, Now(), std::move(done));
           })
        .value();
  };
  LimitedRoom little(5'000);
  const Page none = list("", little);
  EXPECT_TRUE(none.jobs.no_room);
  EXPECT_THAT(none.jobs.jobs, IsEmpty());
  EXPECT_EQ(little.bytes(), 0U);
  LimitedRoom enough(35'000);
  EXPECT_EQ(list(none.cursor, enough).jobs.jobs.size(), 3U) << "it goes on where it was";
}

TEST_P(StoreContract, RedriveGivesDeadJobsAllTheirAttemptsAgain) {
  Set([](Topic& topic) { topic.max_attempts = 2; });
  SubmitAll({Job("a"), Job("b"), Job("c")});
  for (int i = 0; i < 2; ++i) {
    for (const JobView& job : Claim().jobs) Nack(job.token, 0ms, "no");
  }
  EXPECT_EQ(List(State::kDead).size(), 3U);
  EXPECT_EQ(Sweep(SweepKind::kRedrive, 2), 2U);
  EXPECT_EQ(Sweep(SweepKind::kRedrive, 2), 1U);
  EXPECT_EQ(Sweep(SweepKind::kRedrive, 2), 0U);
  Scan();
  EXPECT_THAT(found_.ready, testing::Contains(kTopic));
  const JobBatch batch = Claim();
  EXPECT_EQ(batch.jobs.size(), 3U);
  for (const JobView& job : batch.jobs) EXPECT_EQ(job.attempt, 1U);
  EXPECT_EQ(Nack(batch.jobs[0].token, 0ms), SettleOutcome::kOk) << "not dead at once";
  EXPECT_EQ(Figures().redriven, 3U);
}

TEST_P(StoreContract, PurgeDeadRemovesDeadJobsAlone) {
  Set([](Topic& topic) { topic.max_attempts = 1; });
  Accept(Job("dead"));
  EXPECT_EQ(Nack(ClaimOne().token), SettleOutcome::kDead);
  Accept(Job("leased"));
  ClaimOne();
  Accept(Job("scheduled", 1h));
  EXPECT_EQ(Sweep(SweepKind::kPurgeDead), 1U);
  EXPECT_EQ(StateOf("dead"), std::nullopt);
  EXPECT_EQ(StateOf("leased"), State::kLeased);
  EXPECT_EQ(StateOf("scheduled"), State::kScheduled);
  EXPECT_EQ(Figures().purged, 1U);
  Accept(Job("dead"));
}

TEST_P(StoreContract, PurgeRemovesAllButLeasedJobs) {
  Set([](Topic& topic) { topic.max_attempts = 1; });
  Accept(Job("dead"));
  EXPECT_EQ(Nack(ClaimOne().token), SettleOutcome::kDead);
  Accept(Job("leased"));
  const Token token = ClaimOne().token;
  Accept(Job("ready"));
  Accept(Job("scheduled", 1h));
  Accept(CountJob("count", 3));
  Scan();
  EXPECT_EQ(Sweep(SweepKind::kPurge, 3), 3U);
  EXPECT_EQ(Sweep(SweepKind::kPurge, 3), 1U);
  EXPECT_EQ(Sweep(SweepKind::kPurge, 3), 0U);
  for (const char* id : {"dead", "ready", "scheduled", "count"}) EXPECT_EQ(StateOf(id), std::nullopt) << id;
  EXPECT_THAT(ClaimIds(), IsEmpty());
  EXPECT_EQ(Ack(token), SettleOutcome::kOk);
  Pass(2h);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  EXPECT_EQ(Figures().purged, 4U);
}

TEST_P(StoreContract, ASweepMeetsEveryJobOnceByItsCursor) {
  Set([](Topic& topic) { topic.retention = 1h; });
  for (int i = 0; i < 7; ++i) Accept(Job({}, 1h));
  Accept(Job("leased"));
  const Token leased = ClaimOne().token;
  Accept(Job("done"));
  Ack(ClaimOne().token);
  const auto sweep = [&](SweepKind kind) {
    size_t changed = 0;
    std::string cursor;
    do {
      const Swept swept =
          *Await<Swept>([&](auto done) { store().Sweep(kTopic, kind, cursor, 2, Now(), std::move(done)); });
      EXPECT_LE(swept.changed, 2U);
      changed += swept.changed;
      cursor = swept.cursor;
    } while (!cursor.empty());
    return changed;
  };
  EXPECT_EQ(sweep(SweepKind::kPurge), 7U);
  EXPECT_EQ(Figures().leased, 1U);
  EXPECT_EQ(sweep(SweepKind::kEmpty), 2U) << "leased and retained ones too";
  EXPECT_EQ(Figures().leased, 0U);
  EXPECT_EQ(Figures().purged, 8U);
  EXPECT_EQ(StateOf("done"), std::nullopt);
  EXPECT_EQ(Ack(leased), SettleOutcome::kStale);
  const auto wrong =
      Await<Swept>([&](auto done) { store().Sweep(kTopic, SweepKind::kPurge, "x!", 1, Now(), std::move(done)); });
  EXPECT_EQ(wrong.error().field, "cursor");
}

TEST_P(StoreContract, ASweepEndsWhateverComesMeanwhile) {
  Set([](Topic& topic) { topic.retention = 24h; });
  for (int i = 0; i < 3; ++i) Accept(CountJob(fmt::format("old count {}", i), 9));
  for (int i = 0; i < 3; ++i) Accept(Job(fmt::format("old {}", i), 1h));
  for (int i = 0; i < 3; ++i) Accept(Job(fmt::format("old done {}", i)));
  TakeIds();
  std::string cursor;
  const auto sweep = [&] {
    const Swept swept =
        *Await<Swept>([&](auto done) { store().Sweep(kTopic, SweepKind::kEmpty, cursor, 2, Now(), std::move(done)); });
    cursor = swept.cursor;
  };
  sweep();
  for (int i = 0; i < 9; ++i) {
    Accept(CountJob(fmt::format("young count {}", i), 9));
    Accept(Job(fmt::format("young {}", i), 1h));
    Accept(Job(fmt::format("young done {}", i)));
    TakeIds(1);
    Accept(Job(fmt::format("young leased {}", i)));
    EXPECT_EQ(Claim(1).jobs.size(), 1U);
  }
  for (int i = 0; i < 100 && !cursor.empty(); ++i) sweep();
  EXPECT_EQ(cursor, "");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(StateOf(fmt::format("old count {}", i)), std::nullopt);
    EXPECT_EQ(StateOf(fmt::format("old {}", i)), std::nullopt);
    EXPECT_EQ(StateOf(fmt::format("old done {}", i)), std::nullopt);
  }
}

TEST_P(StoreContract, RetentionKeepsDoneAndCancelledJobsFindable) {
  Set([](Topic& topic) { topic.retention = 1h; });
  const Submitted done = Accept(Job("done"));
  EXPECT_EQ(Ack(ClaimOne().token), SettleOutcome::kOk);
  Accept(Job("cancelled", 1s));
  EXPECT_EQ(Cancel("cancelled"), AmendOutcome::kDone);
  EXPECT_EQ(Figures().bytes, 0U) << "they count for no capacity";
  Pass(1h - 1ms);
  EXPECT_EQ(StateOf("done"), State::kDone);
  EXPECT_EQ(Find(UidText(done.uid)).uid, done.uid);
  EXPECT_EQ(StateOf("cancelled"), State::kCancelled);
  Pass(1ms);
  EXPECT_EQ(StateOf("done"), std::nullopt);
  EXPECT_EQ(StateOf("cancelled"), std::nullopt);
  EXPECT_THAT(ClaimIds(), IsEmpty());
}

TEST_P(StoreContract, RetentionKeepsIdsTaken) {
  Set([](Topic& topic) { topic.retention = 1h; });
  const Submitted first = Accept(Job("a"));
  EXPECT_EQ(Ack(ClaimOne().token), SettleOutcome::kOk);
  const Submitted again = Submit(Job("a"));
  EXPECT_EQ(again.outcome, SubmitOutcome::kDuplicate);
  EXPECT_EQ(again.uid, first.uid);
  EXPECT_EQ(Submit(Job("a", 1s)).outcome, SubmitOutcome::kConflict);
  EXPECT_EQ(Submit(Asking(Job("a", 1s), OnConflict::kKeep)).outcome, SubmitOutcome::kDuplicate);
  EXPECT_THAT(ClaimIds(), IsEmpty()) << "nothing was started by them";
  const Submitted replaced = Accept(Asking(Job("a", 1s), OnConflict::kReplace));
  EXPECT_NE(replaced.uid, first.uid);
  EXPECT_EQ(StateOf("a"), State::kScheduled);
  Pass(1s);
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
  EXPECT_EQ(Figures().cancelled, 0U) << "the one that was replaced had ended";
}

TEST_P(StoreContract, RetentionSurvivesARestart) {
  Set([](Topic& topic) { topic.retention = 1h; });
  Accept(Job("done"));
  EXPECT_EQ(Ack(ClaimOne().token), SettleOutcome::kOk);
  Accept(Job("cancelled", 1s));
  EXPECT_EQ(Cancel("cancelled"), AmendOutcome::kDone);
  harness_->Restart();
  EXPECT_EQ(StateOf("done"), State::kDone);
  EXPECT_EQ(StateOf("cancelled"), State::kCancelled);
  EXPECT_EQ(Submit(Job("done")).outcome, SubmitOutcome::kDuplicate);
  EXPECT_EQ(Cancel("cancelled"), AmendOutcome::kDone);
  Pass(1h);
  EXPECT_EQ(StateOf("done"), std::nullopt);
  EXPECT_EQ(StateOf("cancelled"), std::nullopt);
}

TEST_P(StoreContract, TopicsKeepTheirSettingsAcrossARestart) {
  Topic topic = DefaultTopic("settings");
  topic.slots = 64;
  topic.capacity_jobs = 5;
  topic.capacity_bytes = 1 << 20;
  topic.lease = 7s;
  topic.max_attempts = 3;
  topic.backoff_base = 2s;
  topic.backoff_max = 20s;
  topic.count_limit = 9;
  topic.retention = 1h;
  topic.paused = true;
  topic.version = 4;
  Put(topic);
  Put(topic);
  EXPECT_EQ(Figures("settings").topic, topic);
  harness_->Restart();
  EXPECT_EQ(Figures("settings").topic, topic);
  topic.paused = false;
  topic.version = 5;
  Put(topic);
  EXPECT_EQ(Figures("settings").topic, topic);
}

TEST_P(StoreContract, TopicsKeepTheirDeliveryAcrossARestart) {
  const Delivery delivery{.sink = "webhook",
                          .settings = {{"url", "https://example.com/hook?a=b"}, {"in_flight", "7"}, {"secret", ""}}};
  Set([&](Topic& topic) { topic.delivery = delivery; });
  Put(DefaultTopic("pulled"));
  for (const bool crash : {false, true}) {
    crash ? harness_->Crash() : harness_->Restart();
    EXPECT_EQ(Figures().topic.delivery, delivery);
    EXPECT_FALSE(Figures("pulled").topic.delivery.Pushes());
  }
  Set([](Topic& topic) { topic.delivery = {}; });
  harness_->Restart();
  EXPECT_EQ(Figures().topic.delivery, Delivery{}) << "back to pull";
}

TEST_P(StoreContract, DropTopicRemovesItWithItsJobs) {
  Accept(Job("a", 1h));
  Accept(Job("leased"));
  const Token token = ClaimOne().token;
  const auto drop = [&] { return Await<void>([&](Done<void> done) { store().DropTopic(kTopic, std::move(done)); }); };
  EXPECT_TRUE(drop());
  EXPECT_TRUE(drop()) << "ok where there is none";
  EXPECT_THAT(store().Topics(), IsEmpty());
  Pass(2h);
  harness_->Restart();
  EXPECT_THAT(store().Topics(), IsEmpty());
  Put(DefaultSettings());
  EXPECT_EQ(Find("a").uid, 0U);
  EXPECT_EQ(Ack(token), SettleOutcome::kStale);
  EXPECT_THAT(ClaimIds(), IsEmpty());
  EXPECT_EQ(Figures().scheduled, 0U);
  Accept(Job("a"));
  EXPECT_THAT(ClaimIds(), ElementsAre("a"));
}

TEST_P(StoreContract, ATopicThatIsMadeAgainHasNothingOfTheOneBefore) {
  Topic topic = DefaultTopic("again");
  topic.slots = 8;
  topic.capacity_jobs = 8;
  topic.retention = 1h;
  topic.version = 5;
  Put(topic);
  std::vector<NewJob> jobs;
  for (uint32_t slot = 0; slot < 8; ++slot) {
    jobs.push_back(slot == 0 ? CountJob("count", 2) : Job());
    jobs.back().slot = slot;
  }
  for (const Submitted& each : SubmitAll(jobs, "again")) EXPECT_EQ(each.outcome, SubmitOutcome::kAccepted);
  EXPECT_EQ(Claim(2, 30s, "again").jobs.size(), 2U);
  EXPECT_TRUE(Await<void>([&](Done<void> done) { store().DropTopic("again", std::move(done)); }));
  topic.slots = 2;
  topic.capacity_jobs = 4;
  topic.version = 1;
  Put(topic);
  EXPECT_EQ(Figures("again").topic, topic);
  Pass(1h);
  EXPECT_THAT(Claim(1000, 30s, "again").jobs, IsEmpty());
  const TopicFigures empty = Figures("again");
  EXPECT_EQ(std::tuple(empty.scheduled, empty.leased, empty.bytes, empty.accepted), std::tuple(0U, 0U, 0U, 0U));
  for (size_t i = 0; i < 5; ++i) {
    NewJob job = Job();
    job.slot = i % 2;
    EXPECT_EQ(Submit(job, "again").outcome, i < 4 ? SubmitOutcome::kAccepted : SubmitOutcome::kOverCapacity) << i;
  }
  EXPECT_EQ(Claim(1000, 30s, "again").jobs.size(), 4U);
}

TEST_P(StoreContract, CallsForAnUnknownTopicSaySo) {
  const auto code = [](const auto& result) { return result ? std::optional<Code>() : result.error().code; };
  const NewJob job = Job("a");
  const Settlement settlement;
  const Amendment amendment{.job = {"a", {}}};
  const CountEvent event{{"a", {}}, "e", 1};
  const JobRef ref{"a", {}};
  const char* no = "no such topic";
  std::vector<std::optional<Code>> codes{
      code(Await<std::vector<Submitted>>([&](auto d) { store().Submit(no, {&job, 1}, Now(), std::move(d)); })),
      code(Await<JobBatch>([&](auto d) { store().Claim(no, {1}, 1s, Now(), std::move(d)); })),
      code(Await<std::vector<SettleOutcome>>(
          [&](auto d) { store().Settle(no, {&settlement, 1}, Now(), std::move(d)); })),
      code(Await<std::vector<Amended>>([&](auto d) { store().Amend(no, {&amendment, 1}, Now(), std::move(d)); })),
      code(Await<std::vector<Counted>>([&](auto d) { store().Count(no, {&event, 1}, Now(), std::move(d)); })),
      code(Await<JobBatch>([&](auto d) { store().Find(no, {&ref, 1}, nullptr, Now(), std::move(d)); })),
      code(Await<Page>([&](auto d) { store().List(no, OfState(State::kDead), {}, {1}, Now(), std::move(d)); })),
      code(Await<Swept>([&](auto d) { store().Sweep(no, SweepKind::kPurge, {}, 1, Now(), std::move(d)); }))};
  for (size_t i = 0; i < codes.size(); ++i) EXPECT_EQ(codes[i], Code::kTopicNotFound) << i;
}

TEST_P(StoreContract, FiguresFollowTheJobs) {
  SubmitAll({Job("a"), Job("b"), Job("later", 1h), CountJob("count", 2)});
  Scan();
  TopicFigures figures = Figures();
  EXPECT_EQ(figures.scheduled, 4U);
  EXPECT_EQ(figures.ready, 2U);
  EXPECT_EQ(figures.accepted, 4U);
  EXPECT_GE(figures.bytes, 4 * 7 + 12U);
  const JobBatch batch = Claim();
  ASSERT_EQ(batch.jobs.size(), 2U);
  EXPECT_EQ(Ack(batch.jobs[0].token), SettleOutcome::kOk);
  figures = Figures();
  EXPECT_EQ(figures.scheduled, 2U);
  EXPECT_EQ(figures.ready, 0U);
  EXPECT_EQ(figures.leased, 1U);
  EXPECT_EQ(figures.acked, 1U);
  harness_->Restart();
  figures = Figures();
  EXPECT_EQ(figures.recovered, 3U);
  EXPECT_EQ(figures.leased, harness_->keeps_leases() ? 1U : 0U);
  EXPECT_EQ(figures.scheduled + figures.leased, 3U);
  EXPECT_EQ(figures.accepted, 0U) << "counts since the store was opened";
}

TEST_P(StoreContract, AdvanceSaysWhenItHasWorkNext) {
  Scan();
  EXPECT_EQ(found_.next_utc, kNever);
  EXPECT_THAT(found_.ready, IsEmpty());
  Accept(Job("steady", 5s));
  Accept(JobAt("absolute", Now().utc + 3s));
  Scan();
  EXPECT_GT(found_.next_steady, Now().steady) << "it would be called for nothing, again and again";
  EXPECT_LE(found_.next_steady, Now().steady + 5s);
  EXPECT_GT(found_.next_utc, Now().utc);
  EXPECT_LE(found_.next_utc, Now().utc + 3s);
  Pass(5s);
  EXPECT_EQ(std::ranges::count(found_.ready, kTopic), 1);
  Claim(1000, 7s);
  Scan();
  EXPECT_LE(found_.next_steady, Now().steady + 7s) << "the leases run out then";
}

TEST_P(StoreContract, AdvanceDoesAboutAsMuchAsItsBudget) {
  std::vector<std::string> ids;
  for (int i = 0; i < 2000; ++i) ids.push_back(fmt::format("j{}", i));
  std::vector<NewJob> jobs;
  for (const std::string& id : ids) jobs.push_back(Job(id, 1s));
  SubmitAll(jobs);
  clock().Advance(1s);
  int rounds = 0;
  for (bool more = true; more; ++rounds) {
    const auto advanced = Await<Advanced>([&](auto done) { store().Advance(Now(), 10, std::move(done)); });
    ASSERT_TRUE(advanced);
    more = advanced->more;
    ASSERT_LT(rounds, 5000) << "it does not come to an end";
  }
  EXPECT_EQ(Claim(5000).jobs.size(), 2000U);
}

TEST_P(StoreContract, TopicsAreReadInPartsAndOneByOne) {
  std::set<std::string> expected{kTopic};
  for (int i = 0; i < 25; ++i) {
    Topic topic = DefaultSettings();
    topic.name = fmt::format("topic-{}", i);
    Put(topic);
    expected.insert(topic.name);
  }
  Accept(Job("a", 1h), "topic-7");
  std::multiset<std::string> met;
  std::string cursor;
  do {
    const TopicsPage page = store().TopicsFrom(cursor, 10);
    ASSERT_LE(page.topics.size(), 10U);
    for (const TopicFigures& figures : page.topics) {
      met.insert(figures.topic.name);
      const auto alone = store().FindFigures(figures.topic.name);
      ASSERT_TRUE(alone);
      EXPECT_EQ(alone->topic, figures.topic);
      EXPECT_EQ(alone->scheduled, figures.scheduled);
      EXPECT_EQ(figures.scheduled, figures.topic.name == "topic-7" ? 1U : 0U);
    }
    cursor = page.cursor;
  } while (!cursor.empty());
  EXPECT_EQ(met, (std::multiset<std::string>(expected.begin(), expected.end())));
  EXPECT_FALSE(store().FindFigures("none"));
}

}  // namespace
}  // namespace tocsin
