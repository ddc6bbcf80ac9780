// Contract of Store: the changes that operators make.
#include <array>

#include "spi/contract/store_contract.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Kind {
  AmendKind kind;
  const char* name;
  std::array<AmendOutcome, 5> outcomes;              // by State
  std::array<std::optional<State>, 5> states_after;  // nothing: gone
};

constexpr auto kOk = AmendOutcome::kDone;
constexpr auto kFlies = AmendOutcome::kInFlight;
constexpr auto kOver = AmendOutcome::kFinished;
constexpr std::optional<State> kGone;

constexpr std::array<Kind, 8> kKinds{{
    // Of a job that is   scheduled  leased  dead  done  cancelled
    {AmendKind::kCancel,
     "cancel",
     {kOk, kFlies, kOver, kOver, kOk},
     {State::kCancelled, State::kLeased, State::kDead, State::kDone, State::kCancelled}},
    {AmendKind::kReschedule,
     "reschedule",
     {kOk, kFlies, kOver, kOver, kOver},
     {State::kScheduled, State::kLeased, State::kDead, State::kDone, State::kCancelled}},
    {AmendKind::kPayload,
     "payload",
     {kOk, kFlies, kOk, kOver, kOver},
     {State::kScheduled, State::kLeased, State::kDead, State::kDone, State::kCancelled}},
    {AmendKind::kFire,
     "fire",
     {kOk, kFlies, kOver, kOver, kOver},
     {State::kScheduled, State::kLeased, State::kDead, State::kDone, State::kCancelled}},
    {AmendKind::kRedrive,
     "redrive",
     {kOver, kFlies, kOk, kOver, kOver},
     {State::kScheduled, State::kLeased, State::kScheduled, State::kDone, State::kCancelled}},
    {AmendKind::kRemove, "remove", {kOk, kFlies, kOk, kOk, kOk}, {kGone, State::kLeased, kGone, kGone, kGone}},
    {AmendKind::kAttempts,
     "attempts",
     {kOk, kFlies, kOk, kOver, kOver},
     {State::kScheduled, State::kLeased, State::kDead, State::kDone, State::kCancelled}},
    {AmendKind::kRevoke,
     "revoke",
     {kOver, kOk, kOver, kOver, kOver},
     {State::kScheduled, State::kScheduled, State::kDead, State::kDone, State::kCancelled}},
}};

Amendment Asked(AmendKind kind, std::string_view id) {
  const bool moves = kind == AmendKind::kReschedule;
  Amendment amendment{.job = {id, {}}, .kind = kind, .delay = moves ? Millis(2h) : Millis(0)};
  if (kind == AmendKind::kAttempts) amendment.max_attempts = 7;
  if (kind == AmendKind::kPayload || moves) amendment.payload = "new";
  return amendment;
}

TEST_P(StoreContract, AmendHasADefiniteAnswerInEveryState) {
  Set([](Topic& topic) {
    topic.retention = 24h;
    topic.max_attempts = 2;
  });
  const auto id = [](const Kind& kind, int state) { return fmt::format("{}-{}", kind.name, state); };
  for (const Kind& kind : kKinds) {
    for (int state = 0; state < 5; ++state) {
      const bool waits = state == 0 || state == 4;
      Accept(Job(id(kind, state), waits ? 1h : 0ms));
      const Token token = waits ? Token() : ClaimOne(1h).token;
      if (state == 2) EXPECT_EQ(Bury(token, "no"), SettleOutcome::kDead);
      if (state == 3) EXPECT_EQ(Ack(token), SettleOutcome::kOk);
      if (state == 4) EXPECT_EQ(Cancel(id(kind, state)), AmendOutcome::kDone);
    }
  }
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    EXPECT_EQ(Amend(Asked(kind.kind, "none")).outcome, AmendOutcome::kUnknown);
    EXPECT_EQ(Amend(Asked(kind.kind, UidText(1))).outcome, AmendOutcome::kUnknown);
    for (size_t state = 0; state < 5; ++state) {
      const std::string each = id(kind, static_cast<int>(state));
      EXPECT_EQ(Amend(Asked(kind.kind, each)).outcome, kind.outcomes[state]) << state;
      EXPECT_EQ(StateOf(each), kind.states_after[state]) << state;
      if (kind.outcomes[state] == kOk) continue;
      EXPECT_EQ(Find(each).payload, "payload") << state << ": nothing changed";
      EXPECT_EQ(Find(each).max_attempts, 2U) << state;
    }
  }
  const TopicFigures figures = Figures();
  EXPECT_EQ(figures.accepted, 40U);
  EXPECT_EQ(figures.scheduled, 7U + 1 + 1 - 1);  // without the cancelled one; the redriven, the revoked; one removed
  EXPECT_EQ(figures.leased, 7U);
  EXPECT_EQ(figures.dead, 6U);
  EXPECT_EQ(figures.acked, 8U);
  EXPECT_EQ(figures.cancelled, 9U);
  EXPECT_EQ(figures.purged, 2U) << "those that had ended were counted already";
  EXPECT_EQ(figures.redriven, 1U);
  EXPECT_EQ(figures.expired, 1U);
  EXPECT_EQ(figures.died, 8U);
  harness_->Restart();
  for (const Kind& kind : kKinds) {
    for (size_t state = 0; state < 5; ++state) {
      if (kind.states_after[state] == State::kLeased) continue;
      const std::string each = id(kind, static_cast<int>(state));
      EXPECT_EQ(StateOf(each), kind.states_after[state]) << each << " after a restart";
    }
  }
  EXPECT_EQ(Figures().recovered, 21U);
}

TEST_P(StoreContract, OneDeadLetterIsRedriven) {
  Set([](Topic& topic) { topic.max_attempts = 2; });
  const std::string given = UidText(Accept(Job()).uid);
  Accept(Keyed(Job("own"), "key"));
  Accept(Job("stays"));
  for (int i = 0; i < 2; ++i) {
    for (const JobView& job : Claim().jobs) Nack(job.token, 0ms, "no");
  }
  EXPECT_EQ(Figures().dead, 3U);
  Pass(10s);
  EXPECT_EQ(Change("own", AmendKind::kRedrive), AmendOutcome::kUnknown) << "its key is a part of its name";
  const Amended redriven = Amend({.job = {given, {}}, .kind = AmendKind::kRedrive});
  EXPECT_EQ(redriven.outcome, AmendOutcome::kDone);
  EXPECT_EQ(redriven.due, Now().utc);
  EXPECT_EQ(Change("own", AmendKind::kRedrive, "key"), AmendOutcome::kDone);
  EXPECT_EQ(Change("own", AmendKind::kRedrive, "key"), AmendOutcome::kFinished) << "it is not dead any more";
  EXPECT_EQ(Find("own", "key").due, Now().utc);
  EXPECT_EQ(Find("own", "key").attempt, 0U);
  EXPECT_EQ(Figures().redriven, 2U);
  EXPECT_EQ(Figures().dead, 1U);
  Scan();
  EXPECT_THAT(found_.ready, testing::Contains(kTopic));
  const JobBatch batch = Claim();
  ASSERT_EQ(batch.jobs.size(), 2U);
  for (const JobView& job : batch.jobs) EXPECT_EQ(job.attempt, 1U);
  EXPECT_EQ(Nack(batch.jobs[0].token, 0ms), SettleOutcome::kOk) << "it has all its attempts again";
  EXPECT_EQ(StateOf("stays"), State::kDead);
}

TEST_P(StoreContract, ARedrivenJobSurvivesARestart) {
  Accept(Job("a"));
  EXPECT_EQ(Bury(ClaimOne().token, "no"), SettleOutcome::kDead);
  EXPECT_EQ(Change("a", AmendKind::kRedrive), AmendOutcome::kDone);
  harness_->Restart();
  EXPECT_EQ(ClaimOne().attempt, 1U);
}

TEST_P(StoreContract, ARemovedJobIsGone) {
  Set([](Topic& topic) { topic.retention = 1h; });
  const std::string given = UidText(Accept(Job({}, 1h)).uid);
  Accept(Keyed(Job("own", 1h), "key"));
  Accept(CountJob("count", 2));
  Accept(Job("dead"));
  EXPECT_EQ(Bury(ClaimOne().token, "no"), SettleOutcome::kDead);
  Accept(Job("done"));
  EXPECT_EQ(Ack(ClaimOne().token), SettleOutcome::kOk);
  Accept(Job("ready"));
  Scan();
  EXPECT_EQ(Change(given, AmendKind::kRemove), AmendOutcome::kDone);
  EXPECT_EQ(Change("own", AmendKind::kRemove, "key"), AmendOutcome::kDone);
  for (const char* id : {"count", "dead", "done", "ready"}) {
    EXPECT_EQ(Change(id, AmendKind::kRemove), AmendOutcome::kDone) << id;
    EXPECT_EQ(Change(id, AmendKind::kRemove), AmendOutcome::kUnknown) << id;
    EXPECT_EQ(StateOf(id), std::nullopt) << id << " is not retained";
  }
  EXPECT_EQ(Figures().purged, 5U) << "the done one counts as acked";
  EXPECT_EQ(Figures().cancelled, 0U);
  EXPECT_EQ(Figures().bytes, 0U);
  EXPECT_THAT(Select({}), IsEmpty());
  harness_->Restart();
  EXPECT_THAT(Select({}), IsEmpty());
  for (const char* id : {"count", "dead", "done", "ready"}) Accept(Job(id, 1s));
  Pass(2h);
  EXPECT_EQ(ClaimIds().size(), 4U) << "the removed ones fire nothing";
}

TEST_P(StoreContract, AnotherNumberOfAttempts) {
  Set([](Topic& topic) { topic.max_attempts = 2; });
  for (const char* id : {"more", "fewer"}) {
    Accept(Job(id));
    EXPECT_EQ(Nack(ClaimOne().token, 1h), SettleOutcome::kOk);
  }
  EXPECT_EQ(NewAttempts("more", 3), AmendOutcome::kDone);
  EXPECT_EQ(NewAttempts("fewer", 1), AmendOutcome::kDone);
  EXPECT_EQ(Find("more").max_attempts, 3U);
  EXPECT_EQ(Find("more").attempt, 1U) << "the attempts used up stay";
  EXPECT_EQ(StateOf("fewer"), State::kScheduled) << "its next failure is the last";
  harness_->Restart();
  EXPECT_EQ(Find("more").max_attempts, 3U);
  EXPECT_THAT(ClaimIds(), IsEmpty()) << "the due time stays";
  Pass(1h);
  for (const JobView& job : Claim().jobs) {
    EXPECT_EQ(job.attempt, 2U);
    const bool dies = job.own_id == "fewer";
    EXPECT_EQ(Nack(job.token, 0ms), dies ? SettleOutcome::kDead : SettleOutcome::kOk) << job.own_id;
  }
  EXPECT_EQ(Nack(ClaimOne().token, 0ms), SettleOutcome::kDead);
  EXPECT_EQ(NewAttempts("more", 5), AmendOutcome::kDone);
  EXPECT_EQ(StateOf("more"), State::kDead) << "a dead letter stays dead until it is redriven";
  EXPECT_EQ(Change("more", AmendKind::kRedrive), AmendOutcome::kDone);
  const JobView job = ClaimOne();
  EXPECT_EQ(job.attempt, 1U);
  EXPECT_EQ(job.max_attempts, 5U);
}

TEST_P(StoreContract, ADeadLetterIsMendedAndRedriven) {
  Accept(Job("a", 0ms, "broken"));
  EXPECT_EQ(Bury(ClaimOne().token, "does not parse"), SettleOutcome::kDead);
  const uint64_t before = Figures().bytes;
  EXPECT_EQ(NewPayload("a", "mended and longer"), AmendOutcome::kDone);
  EXPECT_GT(Figures().bytes, before);
  harness_->Restart();
  EXPECT_EQ(StateOf("a"), State::kDead);
  EXPECT_EQ(Find("a").reason, "does not parse");
  EXPECT_EQ(Change("a", AmendKind::kRedrive), AmendOutcome::kDone);
  EXPECT_EQ(ClaimOne().payload, "mended and longer");
}

TEST_P(StoreContract, ARevokedLeaseIsOver) {
  const std::string given = UidText(Accept(Job()).uid);
  const Token token = ClaimAs("ann", 1h).token;
  Pass(10s);
  EXPECT_EQ(Change(given, AmendKind::kRevoke), AmendOutcome::kDone);
  for (const SettleKind kind : {SettleKind::kAck, SettleKind::kNack, SettleKind::kExtend, SettleKind::kRelease}) {
    EXPECT_EQ(Settle({.token = token, .kind = kind}), SettleOutcome::kStale) << static_cast<int>(kind);
  }
  EXPECT_EQ(Change(given, AmendKind::kRevoke), AmendOutcome::kFinished) << "nobody holds it";
  const JobView job = Find(given);
  EXPECT_EQ(job.state, State::kScheduled);
  EXPECT_EQ(job.due, Now().utc) << "without a back-off";
  EXPECT_EQ(job.attempt, 1U) << "the attempt is used up";
  EXPECT_EQ(job.reason, kRevokedReason);
  EXPECT_EQ(job.holder, "");
  EXPECT_EQ(Figures().expired, 1U);
  EXPECT_EQ(Figures().nacked, 0U);
  Scan();
  EXPECT_THAT(found_.ready, testing::Contains(kTopic));
  const JobView again = ClaimAs("bob");
  EXPECT_EQ(again.attempt, 2U);
  EXPECT_EQ(Ack(again.token), SettleOutcome::kOk);
  Pass(24h);
  EXPECT_THAT(ClaimIds(), IsEmpty()) << "the old lease expires no more";
  EXPECT_EQ(Figures().expired, 1U);
}

TEST_P(StoreContract, ARevokedLeaseOfTheLastAttemptIsADeath) {
  Set([](Topic& topic) { topic.max_attempts = 1; });
  Accept(Keyed(Job("a"), "key"));
  const Token token = ClaimOne(1h).token;
  EXPECT_EQ(Change("a", AmendKind::kRevoke), AmendOutcome::kUnknown) << "its key is a part of its name";
  EXPECT_EQ(Change("a", AmendKind::kRevoke, "key"), AmendOutcome::kDone);
  EXPECT_EQ(Ack(token), SettleOutcome::kStale);
  EXPECT_EQ(Find("a", "key").state, State::kDead);
  EXPECT_EQ(Find("a", "key").reason, kRevokedReason);
  EXPECT_EQ(Figures().died, 1U);
  EXPECT_EQ(Figures().dead, 1U);
  harness_->Restart();
  EXPECT_EQ(Find("a", "key").state, State::kDead);
}

TEST_P(StoreContract, AJobIsChangedOnlyAtTheAttemptThatWasSeen) {
  const auto change = [this](AmendKind kind, uint32_t attempt) {
    return Amend({.job = {"a", {}}, .kind = kind, .payload = "new", .seen = Seen{.attempt = attempt}}).outcome;
  };
  Accept(Job("a"));
  EXPECT_EQ(change(AmendKind::kPayload, 1), AmendOutcome::kChanged);
  EXPECT_EQ(change(AmendKind::kPayload, 0), AmendOutcome::kDone);
  const Token token = ClaimOne(1h).token;
  ASSERT_EQ(Find("a").attempt, 1U);
  EXPECT_EQ(change(AmendKind::kPayload, 2), AmendOutcome::kInFlight) << "which says more";
  EXPECT_EQ(change(AmendKind::kRevoke, 2), AmendOutcome::kChanged);
  EXPECT_EQ(change(AmendKind::kRevoke, 1), AmendOutcome::kDone);
  EXPECT_EQ(Ack(token), SettleOutcome::kStale);
  const Token second = ClaimOne(1h).token;
  EXPECT_EQ(change(AmendKind::kRevoke, 1), AmendOutcome::kChanged) << "another consumer has it by now";
  EXPECT_EQ(Bury(second, "no"), SettleOutcome::kDead);
  EXPECT_EQ(change(AmendKind::kPayload, 1), AmendOutcome::kChanged);
  EXPECT_EQ(change(AmendKind::kPayload, 2), AmendOutcome::kDone);
}

TEST_P(StoreContract, AJobIsChangedOnlyIfItIsAsItWasSeen) {
  const auto change = [this](std::string_view id, AmendKind kind, Seen seen) {
    return Amend({.job = {id, {}}, .kind = kind, .delay = 2h, .max_attempts = 3, .seen = seen}).outcome;
  };
  Accept(Job("dead"));
  EXPECT_EQ(Bury(ClaimOne().token, "no"), SettleOutcome::kDead);
  Accept(Job("a", 1h));
  Accept(JobAt("at", Now().utc + 1h));
  Accept(CountJob("count", 2));
  const Seen dead{.state = State::kDead};
  for (const AmendKind kind :
       {AmendKind::kCancel, AmendKind::kReschedule, AmendKind::kFire, AmendKind::kRemove, AmendKind::kAttempts}) {
    EXPECT_EQ(change("a", kind, dead), AmendOutcome::kChanged) << static_cast<int>(kind);
    EXPECT_EQ(change("none", kind, dead), AmendOutcome::kUnknown);
  }
  EXPECT_EQ(change("dead", AmendKind::kRemove, {.state = State::kScheduled}), AmendOutcome::kChanged);
  EXPECT_EQ(change("dead", AmendKind::kCancel, {}), AmendOutcome::kFinished) << "which says more";
  EXPECT_EQ(change("dead", AmendKind::kRedrive, dead), AmendOutcome::kDone);
  EXPECT_EQ(change("dead", AmendKind::kRemove, dead), AmendOutcome::kChanged);
  Pass(10s);
  for (const char* id : {"a", "at"}) {
    const Time due = Find(id).due;
    const uint32_t attempts = Find(id).max_attempts;
    EXPECT_EQ(change(id, AmendKind::kAttempts, {.due = due + 2ms}), AmendOutcome::kChanged);
    EXPECT_EQ(change(id, AmendKind::kAttempts, {.due = kNever}), AmendOutcome::kChanged);
    EXPECT_EQ(Find(id).max_attempts, attempts);
    EXPECT_EQ(change(id, AmendKind::kReschedule, {.due = due}), AmendOutcome::kDone);
    EXPECT_EQ(change(id, AmendKind::kReschedule, {.due = due}), AmendOutcome::kChanged);
  }
  EXPECT_EQ(change("count", AmendKind::kReschedule, {.due = Now().utc}), AmendOutcome::kChanged);
  EXPECT_EQ(change("count", AmendKind::kReschedule, {.due = kNever}), AmendOutcome::kDone);
  EXPECT_EQ(change("count", AmendKind::kReschedule, {.due = kNever}), AmendOutcome::kChanged);
}

TEST_P(StoreContract, AUidNamesItsJobWhateverTheOwnIdsOfOthersAre) {
  // Own ids with the texts of server ids that are about to be given out.
  constexpr uint64_t kEach = 20;
  const Uid first = Accept(Job({}, 1h)).uid;
  std::set<std::string> texts;
  for (uint64_t i = 0; i < kEach; ++i) {
    texts.insert(UidText(first + ((2 * kEach - i) << kSlotBits)));
    Accept(Job(UidText(first + ((2 * kEach - i) << kSlotBits)), 1h));
  }
  size_t met = 0;
  for (uint64_t i = 0; i < kEach; ++i) {
    const Uid uid = Accept(Job({}, 1h)).uid;
    if (!texts.contains(UidText(uid))) continue;
    ++met;
    EXPECT_EQ(Amend({.job = {.uid = uid}, .kind = AmendKind::kCancel}).outcome, AmendOutcome::kDone);
    EXPECT_EQ(Amend({.job = {.uid = uid}, .kind = AmendKind::kCancel}).outcome, AmendOutcome::kUnknown);
    EXPECT_EQ(Find(UidText(uid)).own_id, UidText(uid)) << "the other one stays";
  }
  EXPECT_GT(met, 0U);
  EXPECT_EQ(Figures().scheduled, 1 + 2 * kEach - met);
}

TEST_P(StoreContract, OperatorsChangesOfABatchGoInTheirOrder) {
  Accept(Job("a"));
  EXPECT_EQ(Bury(ClaimOne().token, "no"), SettleOutcome::kDead);
  const JobRef job{"a", {}};
  const std::vector<Amendment> batch{
      {.job = job, .kind = AmendKind::kCancel},  {.job = job, .kind = AmendKind::kAttempts, .max_attempts = 9},
      {.job = job, .kind = AmendKind::kRedrive}, {.job = job, .kind = AmendKind::kRedrive},
      {.job = job, .kind = AmendKind::kRemove},  {.job = job, .kind = AmendKind::kRemove}};
  const auto outcomes =
      Await<std::vector<Amended>>([&](auto done) { store().Amend(kTopic, batch, Now(), std::move(done)); });
  ASSERT_TRUE(outcomes);
  std::vector<AmendOutcome> each;
  for (const Amended& one : *outcomes) each.push_back(one.outcome);
  EXPECT_THAT(each, ElementsAre(kOver, kOk, kOk, kOver, kOk, AmendOutcome::kUnknown));
  EXPECT_EQ(Figures().redriven, 1U);
  EXPECT_EQ(Figures().purged, 1U);
}

}  // namespace
}  // namespace tocsin
