// Contract of Store: the jobs that a selector names.
#include <algorithm>

#include "spi/contract/store_contract.h"

namespace tocsin {

using namespace std::chrono_literals;

void StoreContract::FillEveryState() {
  Set([](Topic& topic) {
    topic.retention = 24h;
    topic.max_attempts = 2;
  });
  filled_ = Now().utc;
  const auto header = [](NewJob job, std::string_view name, std::string_view value) {
    job.headers = {{name, value}};
    return job;
  };
  // The time behind each is when the job was created.
  Accept(Job("bank"));  // 0 s
  EXPECT_EQ(Bury(ClaimOne().token, "bank: timeout"), SettleOutcome::kDead);
  Pass(10s);
  Accept(Job("card"));  // 10 s
  EXPECT_EQ(Nack(ClaimOne().token, 0ms, "card: refused"), SettleOutcome::kOk);
  EXPECT_EQ(Nack(ClaimOne().token, 0ms, "card: refused"), SettleOutcome::kDead);
  Pass(10s);
  Accept(Job("done"));  // 20 s
  EXPECT_EQ(Ack(ClaimOne().token), SettleOutcome::kOk);
  Pass(10s);
  Accept(Job("cancelled", 1h));  // 30 s
  EXPECT_EQ(Cancel("cancelled"), AmendOutcome::kDone);
  Pass(10s);
  Accept(Job("leased-1"));  // 40 s
  ClaimAs("ann", 1h);
  Pass(10s);
  Accept(Job("leased-2"));  // 50 s
  EXPECT_EQ(Nack(ClaimOne().token, 0ms, "bank: busy"), SettleOutcome::kOk);
  ClaimAs("bob", 1h);
  Pass(10s);
  Accept(header(Keyed(Job("red", 1h, R"({"customer":"c1"})"), "k"), "color", "red"));  // 60 s
  Pass(10s);
  Accept(header(Job("blue", 2h, R"({"customer":"c2"})"), "color", "blue"));  // 70 s
  Pass(10s);
  Accept(CountJob("count", 3));  // 80 s
  Pass(10s);
  given_id_ = UidText(Accept(header(Keyed(Job({}, 3h, R"({"customer":"c1"})"), "k"), "size", "red")).uid);  // 90 s
  Pass(10s);
  Accept(Job("ready"));  // 100 s
  Scan();
}

namespace {

using ::testing::IsEmpty;

using Ids = std::multiset<std::string>;

/// The states and `ready`.
StateSet States(std::initializer_list<StateSet> each) {
  StateSet all;
  for (const StateSet one : each) all.Add(one);
  return all;
}

const StateSet kScheduled = StateSet::Of(State::kScheduled);
const StateSet kLeased = StateSet::Of(State::kLeased);
const StateSet kDead = StateSet::Of(State::kDead);
const StateSet kDone = StateSet::Of(State::kDone);
const StateSet kCancelled = StateSet::Of(State::kCancelled);

TEST_P(StoreContract, SelectByEachStateAndByAll) {
  FillEveryState();
  const Ids scheduled{"red", "blue", "count", given_id_, "ready"};
  Ids all{"bank", "card", "done", "cancelled", "leased-1", "leased-2"};
  all.insert(scheduled.begin(), scheduled.end());
  for (const size_t page : {1U, 3U, 1000U}) {
    SCOPED_TRACE(page);
    EXPECT_EQ(Select({}, page), all);
    EXPECT_EQ(Select({.states = kScheduled}, page), scheduled);
    EXPECT_EQ(Select({.states = StateSet::Ready()}, page), Ids{"ready"});
    EXPECT_EQ(Select({.states = kLeased}, page), (Ids{"leased-1", "leased-2"}));
    EXPECT_EQ(Select({.states = kDead}, page), (Ids{"bank", "card"}));
    EXPECT_EQ(Select({.states = kDone}, page), Ids{"done"});
    EXPECT_EQ(Select({.states = kCancelled}, page), Ids{"cancelled"});
    EXPECT_EQ(Select({.states = States({StateSet::Ready(), kScheduled})}, page), scheduled);
    EXPECT_EQ(Select({.states = States({StateSet::Ready(), kDead, kDone})}, page),
              (Ids{"ready", "bank", "card", "done"}));
    EXPECT_EQ(Select({.states = States({kScheduled, kLeased, kDead, kDone, kCancelled})}, page), all);
  }
}

TEST_P(StoreContract, SelectReadyFollowsTheClock) {
  Accept(Job("soon", 5s));
  Accept(JobAt("then", Now().utc + 5s));
  Accept(CountJob("count", 1));
  const Selector ready{.states = StateSet::Ready()};
  EXPECT_THAT(Select(ready), IsEmpty());
  EXPECT_EQ(Count("count", "e").outcome, CountOutcome::kFired);
  EXPECT_EQ(Select(ready), Ids{"count"});
  Pass(5s);
  EXPECT_EQ(Select(ready), (Ids{"count", "soon", "then"}));
  EXPECT_EQ(Reschedule("soon", 1s).outcome, AmendOutcome::kDone);
  EXPECT_EQ(Select(ready), (Ids{"count", "then"}));
  EXPECT_EQ(Claim().jobs.size(), 2U);
  EXPECT_THAT(Select(ready), IsEmpty());
}

TEST_P(StoreContract, SelectByIds) {
  FillEveryState();
  const std::string red = UidText(Find("red", "k").uid);
  EXPECT_EQ(Select({.ids = {"blue", "done", "none", given_id_}}), (Ids{"blue", "done", given_id_}));
  EXPECT_EQ(Select({.ids = {red, "red"}}), Ids{"red"}) << "by its server id, by its own, and listed once";
  EXPECT_THAT(Select({.ids = {"none", "re", "redd", UidText(1)}}), IsEmpty());
  std::vector<std::string> many{"card", "ready"};
  for (int i = 0; i < 500; ++i) many.push_back(fmt::format("none-{}", i));
  EXPECT_EQ(Select({.ids = many}, 1), (Ids{"card", "ready"}));
  EXPECT_EQ(Select({.states = kDead, .ids = many}), Ids{"card"});
}

TEST_P(StoreContract, SelectByTheBeginningOfTheId) {
  FillEveryState();
  EXPECT_EQ(Select({.id_prefix = "leased-"}), (Ids{"leased-1", "leased-2"}));
  EXPECT_EQ(Select({.id_prefix = "re"}), (Ids{"red", "ready"}));
  EXPECT_EQ(Select({.id_prefix = "red"}), Ids{"red"}) << "the whole id";
  EXPECT_EQ(Select({.id_prefix = given_id_.substr(0, 5)}), Ids{given_id_}) << "own ids alone are shown";
  EXPECT_THAT(Select({.id_prefix = "eady"}), IsEmpty());
}

TEST_P(StoreContract, SelectByKey) {
  FillEveryState();
  EXPECT_EQ(Select({.key = "k"}, 1), (Ids{"red", given_id_}));
  EXPECT_THAT(Select({.key = "kk"}), IsEmpty());
}

TEST_P(StoreContract, SelectByHeader) {
  FillEveryState();
  EXPECT_EQ(Select({.header = "color"}, 1), (Ids{"red", "blue"}));
  EXPECT_EQ(Select({.header = "color", .header_value = "blue"}), Ids{"blue"});
  EXPECT_THAT(Select({.header = "color", .header_value = "blu"}), IsEmpty());
  EXPECT_THAT(Select({.header = "color", .header_value = ""}), IsEmpty());
  EXPECT_THAT(Select({.header = "red"}), IsEmpty());
}

TEST_P(StoreContract, SelectByReason) {
  FillEveryState();
  EXPECT_EQ(Select({.reason = "bank"}, 1), (Ids{"bank", "leased-2"})) << "also of an attempt that failed before";
  EXPECT_EQ(Select({.reason = "card: refused"}), Ids{"card"});
  EXPECT_THAT(Select({.reason = "card: refused."}), IsEmpty());
}

TEST_P(StoreContract, SelectByHolder) {
  FillEveryState();
  EXPECT_EQ(Select({.holder = "ann"}), Ids{"leased-1"});
  EXPECT_EQ(Select({.states = kLeased, .holder = "bob"}), Ids{"leased-2"});
  EXPECT_THAT(Select({.holder = "an"}), IsEmpty());
  EXPECT_THAT(Select({.states = kScheduled, .holder = "ann"}), IsEmpty());
}

TEST_P(StoreContract, SelectByTimes) {
  FillEveryState();
  const auto at = [this](Millis after) { return filled_ + after; };
  EXPECT_EQ(Select({.due = {at(1h), at(3h)}}, 1), (Ids{"cancelled", "red", "blue"}));
  EXPECT_EQ(Select({.due = {at(3h), std::nullopt}}), Ids{given_id_}) << "a job that waits for a count is never due";
  EXPECT_EQ(Select({.due = {at(3h), std::nullopt, true}}), (Ids{given_id_, "count"})) << "unless it is asked for too";
  EXPECT_EQ(Select({.states = kScheduled, .due = {std::nullopt, at(2h)}}), (Ids{"red", "ready"}));
  EXPECT_EQ(Select({.created = {at(35s), at(65s)}}, 1), (Ids{"leased-1", "leased-2", "red"}));
  EXPECT_EQ(Select({.created = {at(85s), std::nullopt}}), (Ids{given_id_, "ready"}));
  EXPECT_EQ(Select({.created = {std::nullopt, at(15s)}}), (Ids{"bank", "card"}));
  EXPECT_EQ(Select({.died = {at(5s), at(15s)}}), Ids{"card"});
  EXPECT_EQ(Select({.died = {at(-1h), std::nullopt}}), (Ids{"bank", "card"})) << "the others have not died";
  EXPECT_EQ(Select({.died = {std::nullopt, at(5s)}}), Ids{"bank"});
  EXPECT_THAT(Select({.died = {at(15s), std::nullopt}}), IsEmpty());
}

TEST_P(StoreContract, SelectByAttempts) {
  FillEveryState();
  EXPECT_EQ(Select({.attempts_min = 1}, 1), (Ids{"bank", "card", "done", "leased-1", "leased-2"}));
  EXPECT_EQ(Select({.attempts_max = 0}), (Ids{"cancelled", "red", "blue", "count", given_id_, "ready"}));
  EXPECT_EQ(Select({.attempts_min = 2, .attempts_max = 2}), (Ids{"card", "leased-2"}));
  EXPECT_EQ(Select({.states = kLeased, .attempts_max = 1}), Ids{"leased-1"}) << "the number of this delivery";
  EXPECT_THAT(Select({.attempts_min = 3}), IsEmpty());
}

TEST_P(StoreContract, SelectByPayload) {
  FillEveryState();
  EXPECT_EQ(Select({.payload = R"("c1")"}, 1), (Ids{"red", given_id_}));
  EXPECT_EQ(Select({.payload = R"({"customer":"c2"})"}), Ids{"blue"}) << "the whole payload";
  EXPECT_THAT(Select({.payload = R"({"customer":"c2"} )"}), IsEmpty()) << "longer than it";
  EXPECT_THAT(Select({.payload = "color"}), IsEmpty()) << "headers are not searched";
}

TEST_P(StoreContract, SelectByPayloadFindsAnyBytesAnywhere) {
  const size_t size = std::min<size_t>(harness_->largest_payload(), 200'000);
  const std::string needle("a\0\xFF\r\nb", 6);
  std::string at_end(size, 'a');
  at_end.replace(size - needle.size(), needle.size(), needle);
  std::string nearly = at_end;
  nearly.back() = 'a';
  Accept(Job("start", 1h, needle + "rest"));
  Accept(Job("end", 1h, at_end));
  Accept(Job("nearly", 1h, nearly));
  Accept(Job("empty", 1h, ""));
  Accept(Job("short", 1h, needle.substr(0, 5)));
  EXPECT_EQ(Select({.payload = needle}), (Ids{"start", "end"}));
  EXPECT_EQ(Select({.payload = needle}, 1), (Ids{"start", "end"}));
  EXPECT_EQ(Select({.payload = at_end}), Ids{"end"});
  EXPECT_EQ(Select({.payload = "rest"}), Ids{"start"});
  EXPECT_EQ(NewPayload("empty", "rest"), AmendOutcome::kDone);
  EXPECT_EQ(Select({.payload = "rest"}), (Ids{"start", "empty"}));
}

TEST_P(StoreContract, SelectByAllTogether) {
  FillEveryState();
  EXPECT_EQ(Select({.states = kDead, .reason = "bank"}), Ids{"bank"});
  EXPECT_EQ(Select({.states = kLeased, .reason = "bank"}), Ids{"leased-2"});
  EXPECT_EQ(Select({.key = "k", .header = "color"}), Ids{"red"});
  EXPECT_EQ(Select({.payload = "c1", .due = {filled_ + 2h, std::nullopt}}), Ids{given_id_});
  EXPECT_EQ(Select({.states = kLeased, .reason = "busy", .holder = "bob", .attempts_min = 2}), Ids{"leased-2"});
  EXPECT_THAT(Select({.states = kDead, .holder = "bob"}), IsEmpty());
  const Selector all{.states = kScheduled,
                     .ids = {"red", "blue"},
                     .id_prefix = "r",
                     .key = "k",
                     .header = "color",
                     .header_value = "red",
                     .payload = "customer",
                     .due = {filled_ + 1h, filled_ + 2h},
                     .created = {filled_ + 55s, filled_ + 65s},
                     .attempts_max = 0};
  EXPECT_EQ(Select(all), Ids{"red"});
  Selector other = all;
  other.header_value = "blue";
  EXPECT_THAT(Select(other), IsEmpty());
}

TEST_P(StoreContract, SelectShowsTheWholeJob) {
  FillEveryState();
  size_t seen = 0;
  Visit({.header = "color", .header_value = "red"}, 10, [&](const JobView& job) {
    ++seen;
    EXPECT_EQ(job.own_id, "red");
    EXPECT_EQ(job.key, "k");
    EXPECT_EQ(job.payload, R"({"customer":"c1"})");
    ASSERT_EQ(job.headers.size(), 1U);
    EXPECT_EQ(job.headers[0].value, "red");
    ExpectNear(job.created, filled_ + 60s);
  });
  Visit({.holder = "bob"}, 10, [&](const JobView& job) {
    ++seen;
    EXPECT_EQ(job.holder, "bob");
    EXPECT_EQ(job.reason, "bank: busy");
    ExpectNear(job.leased, filled_ + 50s);
  });
  EXPECT_EQ(seen, 2U);
}

TEST_P(StoreContract, SelectShowsEveryMatchOnceWhileOthersChange) {
  Set([](Topic& topic) {
    topic.retention = 1h;
    topic.max_attempts = 1;
  });
  // Those with i % 3 == 0 match and are left alone, i % 3 == 1 match and change, the rest never match.
  Ids expected;
  for (int i = 0; i < 60; ++i) {
    const std::string id = fmt::format("j{}", i);
    Accept(Job(id, i % 2 == 0 ? 1h : 0ms, i % 3 == 2 ? "other" : "wanted: this"));
    if (i % 4 == 1) EXPECT_EQ(Bury(ClaimOne().token, "no"), SettleOutcome::kDead);
    if (i % 4 == 3) ClaimOne(1h);
    if (i % 3 == 0) expected.insert(id);
  }
  Ids seen;
  std::string cursor;
  int pages = 0;
  do {
    const auto page = Await<Page>(
        [&](auto done) { store().List(kTopic, {.payload = "wanted"}, cursor, {4}, Now(), std::move(done)); });
    ASSERT_TRUE(page);
    for (const JobView& job : page->jobs.jobs) {
      EXPECT_TRUE(job.payload.starts_with("wanted")) << job.own_id;
      seen.insert(job.Id());
    }
    cursor = page->cursor;
    const std::string changed = fmt::format("j{}", pages * 3 % 60 + 1);
    const AmendKind kinds[] = {AmendKind::kCancel, AmendKind::kRemove, AmendKind::kRedrive, AmendKind::kRevoke,
                               AmendKind::kFire};
    Change(changed, kinds[pages % 5]);
    Accept(Job(fmt::format("new{}", pages), 2h, "wanted too"));
    ASSERT_LT(++pages, 200);
  } while (!cursor.empty());
  for (const std::string& id : expected) EXPECT_EQ(seen.count(id), 1U) << id;
}

TEST_P(StoreContract, SelectOfNothingLooksAtEveryJobAndEnds) {
  constexpr size_t kJobs = 2'000;
  const std::vector<NewJob> jobs(kJobs, Job({}, 1h, "an ordinary payload"));
  SubmitAll(jobs);
  size_t found = 0;
  const size_t looked = Visit({.payload = "nowhere"}, 100, [&](const JobView&) { ++found; });
  EXPECT_EQ(found, 0U);
  EXPECT_GE(looked, kJobs);
  EXPECT_EQ(Select({.payload = "ordinary"}, 100).size(), kJobs);
  EXPECT_THAT(Select({.states = kDead}), IsEmpty());
}

TEST_P(StoreContract, SelectStaysWithinItsRoom) {
  const std::string payload(10'000, 'x');
  for (int i = 0; i < 12; ++i) Accept(Job(fmt::format("j{}", i), 1h, payload + (i % 2 == 0 ? "even" : "odd")));
  Ids seen;
  std::string cursor;
  for (int pages = 0; pages == 0 || !cursor.empty(); ++pages) {
    ASSERT_LT(pages, 1000);
    LimitedRoom room(25'000);
    const JobMax max{1000, &room};
    const Page page = Await<Page>([&](auto done) {
                        store().List(kTopic, {.payload = "even"}, cursor, max, Now(), std::move(done));
                      }).value();
    EXPECT_LE(page.jobs.jobs.size(), 2U);
    for (const JobView& job : page.jobs.jobs) seen.insert(job.Id());
    cursor = page.cursor;
  }
  EXPECT_EQ(seen, (Ids{"j0", "j2", "j4", "j6", "j8", "j10"}));
}

}  // namespace
}  // namespace tocsin
