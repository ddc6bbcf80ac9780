#include "core/validate.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

using testing::HasSubstr;

constexpr Moment kNow{FromMs(1'800'000'000'000), FromMs(1'800'000'000'000)};
const Limits kLimits;

/// The field that a submit of this job is refused for; empty where it is not.
std::string Fault(const NewJob& job) {
  const Status status = Validate(SubmitRequest{"t", {job}, nullptr}, kLimits, kNow);
  return status ? "" : status.error().field;
}

TEST(Validate, DelaysFromZeroToTenYears) {
  EXPECT_EQ(Fault({.delay = Millis(0)}), "");
  EXPECT_EQ(Fault({.delay = kDelayMax}), "");
  EXPECT_EQ(Fault({.delay = kDelayMax + Millis(1)}), "delay");
  EXPECT_EQ(Fault({.delay = Millis(-1)}), "delay");
  EXPECT_EQ(Fault({.delay = Millis::min()}), "delay");
  EXPECT_EQ(Fault({.delay = Millis::max()}), "delay");
}

TEST(Validate, DueTimesUpToTenYearsFromNow) {
  const auto at = [](int64_t ms) { return NewJob{.timeline = Timeline::kUtc, .due = FromMs(ms)}; };
  EXPECT_EQ(Fault(at(ToMs(kNow.utc) - 1)), "");  // one that has passed counts as now
  EXPECT_EQ(Fault(at(ToMs(kNow.utc + kDelayMax))), "");
  EXPECT_EQ(Fault(at(ToMs(kNow.utc + kDelayMax) + 1)), "due");
  EXPECT_EQ(Fault(at(std::numeric_limits<int64_t>::max())), "due");
  EXPECT_EQ(Fault(at(std::numeric_limits<int64_t>::min())), "due");
}

std::string DueError(int64_t ms) {
  const NewJob job{.timeline = Timeline::kUtc, .due = FromMs(ms)};
  const Status status = Validate(job, kLimits, kNow);
  return status ? "none" : status.error().message;
}

TEST(Validate, ADueTimeInAnotherUnitIsRefusedWithAHint) {
  EXPECT_THAT(DueError(1'800'000'060), HasSubstr("it looks like seconds: 1800000060000 ms"));
  EXPECT_THAT(DueError(1'800'000'060'000'000), HasSubstr("it looks like microseconds: 1800000060000 ms"));
  EXPECT_THAT(DueError(1'800'000'060'000'000'000), HasSubstr("it looks like nanoseconds: 1800000060000 ms"));
  for (const int64_t ms : {int64_t{-1}, int64_t{0}, int64_t{5}, int64_t{946'684'799'999}, int64_t{4'102'444'800'000}}) {
    EXPECT_THAT(DueError(ms), testing::AllOf(HasSubstr("this century"), testing::Not(HasSubstr("looks like")))) << ms;
  }
}

TEST(Validate, ADueTimeThatIsLongPastHasToBeMeant) {
  const auto at = [](Millis ago, PastDue past) {
    return NewJob{.timeline = Timeline::kUtc, .due = kNow.utc - ago, .past = past};
  };
  EXPECT_EQ(Fault(at(kPastMax, PastDue::kRefuse)), "");
  EXPECT_EQ(Fault(at(kPastMax + Millis(1), PastDue::kRefuse)), "due");
  EXPECT_EQ(Fault(at(kPastMax + Millis(1), PastDue::kFire)), "");
  EXPECT_EQ(Fault(at(std::chrono::days(10'000), PastDue::kFire)), "due") << "before this century";
  EXPECT_THAT(DueError(ToMs(kNow.utc - std::chrono::days(3))), HasSubstr("3 days ago"));
  Amendment amendment{.job = {.id = "x"},
                      .kind = AmendKind::kReschedule,
                      .timeline = Timeline::kUtc,
                      .due = kNow.utc - std::chrono::days(3)};
  EXPECT_EQ(Validate(amendment, kLimits, kNow).error().field, "due");
  amendment.past = PastDue::kFire;
  EXPECT_TRUE(Validate(amendment, kLimits, kNow));
}

TEST(Validate, ThePastOfACopy) {
  const auto fault = [](const Restored& past, Trigger trigger = Trigger::kTime) {
    NewJob job{.timeline = Timeline::kUtc, .due = kNow.utc - std::chrono::days(900), .trigger = trigger};
    job.restored = std::make_shared<Restored>(past);
    return Fault(job);
  };
  const Time before = kNow.utc - std::chrono::days(1000);
  EXPECT_EQ(fault({}), "") << "a copy is due when the job was";
  EXPECT_EQ(fault({.dead = true, .attempts = 1000, .created = before, .last_attempt = before, .died = before}), "");
  EXPECT_EQ(fault({.attempts = 1001}), "attempt");
  const std::string long_reason(kReasonBytesMax + 1, 'x');
  EXPECT_EQ(fault({.reason = std::string_view(long_reason).substr(1)}), "");
  EXPECT_EQ(fault({.reason = long_reason}), "reason");
  EXPECT_EQ(fault({.died = before}), "died_ms") << "only of a dead letter";
  for (const Time bad : {FromMs(1), FromMs(-1), kNow.utc + std::chrono::days(2), kNever - Millis(1)}) {
    EXPECT_EQ(fault({.created = bad}), "created_ms") << ToMs(bad);
    EXPECT_EQ(fault({.last_attempt = bad}), "last_attempt_ms") << ToMs(bad);
    EXPECT_EQ(fault({.dead = true, .died = bad}), "died_ms") << ToMs(bad);
  }
  EXPECT_EQ(fault({.created = kNow.utc + std::chrono::hours(1)}), "") << "clocks differ";
  EXPECT_EQ(fault({}, Trigger::kCount), "");
  EXPECT_EQ(fault({.dead = true}, Trigger::kCount), "trigger");
  EXPECT_EQ(fault({.attempts = 1}, Trigger::kEither), "trigger");
}

TEST(Validate, NamesAndSizesOfAJob) {
  const std::string long_name(257, 'x');
  EXPECT_EQ(Fault({.id = std::string_view(long_name).substr(1)}), "");
  EXPECT_EQ(Fault({.id = long_name}), "id");
  EXPECT_EQ(Fault({.id = "a\nb"}), "id");
  EXPECT_EQ(Fault({.key = long_name}), "key");
  EXPECT_EQ(Fault({.count = 1'000'001}), "count");
  EXPECT_EQ(Fault({.max_attempts = 1001}), "max_attempts");
  const std::string payload(kLimits.payload_bytes + 1, 'x');
  EXPECT_EQ(Fault({.payload = std::string_view(payload).substr(1)}), "");
  EXPECT_EQ(Fault({.payload = payload}), "payload");
  EXPECT_EQ(Fault({.headers = std::vector<HeaderView>(33, {"a", "b"})}), "headers");
  EXPECT_EQ(Fault({.headers = {{"a", std::string_view(payload).substr(0, kLimits.header_bytes)}}}), "headers");
  EXPECT_EQ(Fault({.headers = {{"a\r\n", "b"}}}), "headers");
  EXPECT_EQ(Fault({.headers = {{"Tocsin-Probe", "true"}}}), "headers");
  EXPECT_EQ(Fault({.headers = {{"a", "\xff"}}}), "headers");
}

TEST(Validate, AnErrorNamesTheLimitAndTheJob) {
  std::vector<NewJob> jobs(3);
  jobs[2].delay = Millis(-5);
  const Status status = Validate(SubmitRequest{"t", jobs, nullptr}, kLimits, kNow);
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  EXPECT_EQ(status.error().message, "jobs[2]: delay is -5 ms: the range is 0 to 315619200000 ms");
}

TEST(Validate, BatchesAreNeitherEmptyNorTooLarge) {
  EXPECT_EQ(Validate(SubmitRequest{"t", {}, nullptr}, kLimits, kNow).error().field, "jobs");
  const auto status = Validate(SubmitRequest{"t", std::vector<NewJob>(10'001), nullptr}, kLimits, kNow);
  EXPECT_EQ(status.error().code, Code::kTooLarge);
  EXPECT_THAT(status.error().message, HasSubstr("the most is 10000"));
  EXPECT_EQ(Validate(SettleRequest{"t", {}, nullptr}, kLimits).error().field, "tokens");
  EXPECT_EQ(Validate(CountRequest{"t", {}, nullptr}, kLimits).error().field, "events");
  EXPECT_EQ(Validate(FindRequest{"t", {}, nullptr}, kLimits).error().field, "jobs");
}

TEST(Validate, Reserves) {
  const auto fault = [](const ReserveRequest& request) {
    const Status status = Validate(request, kLimits);
    return status ? "" : status.error().field;
  };
  EXPECT_EQ(fault({.topic = "t"}), "");
  EXPECT_EQ(fault({.topic = ""}), "topic");
  EXPECT_EQ(fault({.topic = "t", .max = 0}), "max");
  EXPECT_EQ(fault({.topic = "t", .max = 10'001}), "max");
  EXPECT_EQ(fault({.topic = "t", .wait = Millis(60'001)}), "wait");
  EXPECT_EQ(fault({.topic = "t", .wait = Millis(-1)}), "wait");
  EXPECT_EQ(fault({.topic = "t", .lease = kLimits.lease_max + Millis(1)}), "lease");
  EXPECT_EQ(fault({.topic = "t", .lease = Millis::min()}), "lease");
  EXPECT_EQ(fault({.topic = "t", .consumer = std::string(kHolderBytesMax, 'x')}), "");
  EXPECT_EQ(fault({.topic = "t", .consumer = std::string(kHolderBytesMax + 1, 'x')}), "consumer");
  EXPECT_EQ(fault({.topic = "t", .consumer = "a\tb"}), "consumer");
  EXPECT_EQ(fault({.topic = "t", .consumer = "\xff"}), "consumer");
}

TEST(Validate, SettlementsAmendmentsEventsAndPages) {
  const auto settle = [](const Settlement& one) {
    const Status status = Validate(SettleRequest{"t", {one}, nullptr}, kLimits);
    return status ? "" : status.error().field;
  };
  EXPECT_EQ(settle({.delay = Millis(-1)}), "delay");
  EXPECT_EQ(settle({.lease = Millis(-1)}), "lease");
  const std::string reason(kReasonBytesMax + 1, 'x');
  EXPECT_EQ(settle({.reason = reason}), "reason");

  const auto amend = [](const Amendment& one) {
    const Status status = Validate(AmendRequest{"t", {one}, nullptr}, kLimits, kNow);
    return status ? "" : status.error().field;
  };
  EXPECT_EQ(amend({.job = {.id = "x"}}), "");
  EXPECT_EQ(amend({.job = {.id = ""}}), "id");
  EXPECT_EQ(amend({.job = {.id = "x"}, .kind = AmendKind::kReschedule, .delay = Millis(-1)}), "delay");

  const auto count = [](const CountEvent& one) {
    const Status status = Validate(CountRequest{"t", {one}, nullptr}, kLimits);
    return status ? "" : status.error().field;
  };
  EXPECT_EQ(count({.job = {.id = "x"}, .event = "e"}), "");
  EXPECT_EQ(count({.job = {.id = "x"}, .event = ""}), "event");
  EXPECT_EQ(count({.job = {.id = "x"}, .event = "e", .by = 0}), "by");

  EXPECT_EQ(Validate(ListRequest{.topic = "t", .limit = 0}).error().field, "limit");
}

}  // namespace
}  // namespace tocsin
