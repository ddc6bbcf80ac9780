#include "core/validate.h"

#include <utility>

#include "base/text.h"
#include "spi/delivery_headers.h"

namespace tocsin {
namespace {

template <class T>
Status InRange(std::string_view field, T value, T low, T high, std::string_view unit = "") {
  if (value >= low && value <= high) return {};
  return FailField(Code::kInvalidArgument, std::string(field), "{} is {}{}: the range is {} to {}{}", field, value,
                   unit, low, high, unit);
}

Status InRange(std::string_view field, Millis value, Millis high) {
  return InRange(field, value.count(), int64_t{0}, int64_t{high.count()}, " ms");
}

Status BatchSize(std::string_view field, size_t size, const Limits& limits) {
  if (size == 0) return FailField(Code::kInvalidArgument, std::string(field), "{} is empty", field);
  if (size <= limits.batch) return {};
  return FailField(Code::kTooLarge, std::string(field), "{} has {} entries: the most is {}", field, size, limits.batch);
}

Status OptionalName(std::string_view field, std::string_view name) {
  return name.empty() ? Status{} : ValidateName(field, name);
}

Status CheckConsumer(std::string_view name) {
  if (name.size() > kHolderBytesMax) {
    return FailField(Code::kInvalidArgument, "consumer", "consumer has {} bytes: the most is {}", name.size(),
                     kHolderBytesMax);
  }
  return OptionalName("consumer", name);
}

// This century, in milliseconds.
constexpr int64_t kCenturyBegin = 946'684'800'000;
constexpr int64_t kCenturyEnd = 4'102'444'800'000;

bool IsOfThisCentury(int64_t ms) { return ms >= kCenturyBegin && ms < kCenturyEnd; }

/// The unit that `due` was probably given in, and what it is in milliseconds.
std::string UnitHint(int64_t due) {
  if (due > 0 && due < kCenturyEnd / 1000 && IsOfThisCentury(due * 1000)) {
    return fmt::format("; it looks like seconds: {} ms", due * 1000);
  }
  if (IsOfThisCentury(due / 1000)) return fmt::format("; it looks like microseconds: {} ms", due / 1000);
  if (IsOfThisCentury(due / 1'000'000)) return fmt::format("; it looks like nanoseconds: {} ms", due / 1'000'000);
  return "";
}

Status CheckCentury(std::string_view field, Time time) {
  const int64_t ms = ToMs(time);
  if (IsOfThisCentury(ms)) return {};
  return FailField(Code::kInvalidArgument, std::string(field),
                   "{} is {}: not a time of this century in milliseconds UTC{}", field, ms, UnitHint(ms));
}

int64_t DaysAgo(Time time, Time now) { return std::chrono::duration_cast<std::chrono::days>(now - time).count(); }

Status CheckDue(Time due, PastDue past, Time now) {
  TOCSIN_TRY(CheckCentury("due", due));
  const int64_t ms = ToMs(due);
  if (past == PastDue::kRefuse && now - due > kPastMax) {
    const int64_t days = DaysAgo(due, now);
    return FailField(Code::kInvalidArgument, "due",
                     "due is {} ms, {} day{} ago: add past = fire if the job is to be delivered at once", ms, days,
                     days == 1 ? "" : "s");
  }
  return InRange("due", ms, int64_t{0}, ToMs(now + kDelayMax), " ms");
}

/// `item`: a new job, or an amendment.
template <class Item>
Status CheckWhen(const Item& item, PastDue past, Moment now) {
  if (item.timeline == Timeline::kSteady) return InRange("delay", item.delay, kDelayMax);
  return CheckDue(item.due, past, now.utc);
}

Status CheckReason(std::string_view reason) {
  if (reason.size() <= kReasonBytesMax) return {};
  return FailField(Code::kTooLarge, "reason", "reason has {} bytes: the most is {}", reason.size(), kReasonBytesMax);
}

/// A time of a job's past. The clock that it was read from may have been ahead.
Status CheckPast(std::string_view field, Time time, Time now) {
  constexpr Millis kAheadMax = std::chrono::days(1);
  if (time == Time{} || (IsOfThisCentury(ToMs(time)) && time <= now + kAheadMax)) return {};
  return FailField(Code::kInvalidArgument, std::string(field),
                   "{} is {}: not a time of this century in milliseconds UTC that has passed", field, ToMs(time));
}

/// A bound of a range of times. Other units select nothing, or everything: a bound in seconds is in January 1970.
Status CheckUnit(std::string_view field, const std::optional<Time>& bound) {
  if (!bound || UnitHint(ToMs(*bound)).empty()) return {};
  return CheckCentury(field, *bound);
}

/// More attempts than the job may have are no mistake: its max_attempts may have been lowered since.
Status CheckRestored(const NewJob& job, Time now) {
  const Restored& past = *job.restored;
  TOCSIN_TRY(InRange("attempt", past.attempts, 0U, kAttemptsMax));
  TOCSIN_TRY(CheckReason(past.reason));
  TOCSIN_TRY(CheckPast("created_ms", past.created, now));
  TOCSIN_TRY(CheckPast("last_attempt_ms", past.last_attempt, now));
  TOCSIN_TRY(CheckPast("died_ms", past.died, now));
  if (past.died != Time{} && !past.dead) {
    return FailField(Code::kInvalidArgument, "died_ms", "died_ms is for dead letters: add state = dead");
  }
  if (job.trigger == Trigger::kTime || (!past.dead && past.attempts == 0)) return {};
  return FailField(Code::kInvalidArgument, "trigger",
                   "a job that was delivered waits for no events: leave out trigger, or state and attempt");
}

Status CheckPayload(std::string_view payload, const Limits& limits) {
  if (payload.size() <= limits.payload_bytes) return {};
  return FailField(Code::kTooLarge, "payload", "payload has {} bytes: the most is {}", payload.size(),
                   limits.payload_bytes);
}

bool IsOurs(std::string_view name) {
  return SameWord(name.substr(0, delivery_header::kPrefix.size()), delivery_header::kPrefix);
}

Status CheckHeaders(const std::vector<HeaderView>& headers, const Limits& limits) {
  if (headers.size() > limits.headers) {
    return FailField(Code::kTooLarge, "headers", "headers has {} entries: the most is {}", headers.size(),
                     limits.headers);
  }
  size_t bytes = 0;
  for (const HeaderView& header : headers) {
    TOCSIN_TRY(ValidateName("headers", header.name));
    if (IsOurs(header.name)) {
      return FailField(Code::kInvalidArgument, "headers",
                       "headers has the name {}: names that begin with {} are what the server says of a job",
                       header.name, delivery_header::kPrefix);
    }
    if (!IsUtf8(header.value)) {
      return FailField(Code::kInvalidArgument, "headers", "the value of the header {} is not valid UTF-8", header.name);
    }
    bytes += header.name.size() + header.value.size();
  }
  if (bytes <= limits.header_bytes) return {};
  return FailField(Code::kTooLarge, "headers", "headers has {} bytes: the most is {}", bytes, limits.header_bytes);
}

bool WhenFits(const NewJob& job, Moment now) {
  if (job.timeline == Timeline::kSteady) return job.delay >= Millis(0) && job.delay <= kDelayMax;
  return job.due >= now.utc - kPastMax && job.due <= now.utc + kDelayMax && IsOfThisCentury(ToMs(job.due));
}

/// Most jobs are valid and have no names and no headers. This finds that with a few comparisons instead of as many
/// results. Every job that it accepts is valid.
bool IsPlain(const NewJob& job, const Limits& limits, Moment now) {
  return job.id.empty() && job.key.empty() && job.headers.empty() && !job.restored && job.count <= kCountMax &&
         job.max_attempts <= kAttemptsMax && job.payload.size() <= limits.payload_bytes && WhenFits(job, now);
}

/// Where a reschedule moves jobs to.
Status CheckTarget(Time to, Millis window, Time now) {
  TOCSIN_TRY(CheckCentury("to_ms", to));
  if (now - to > kPastMax) {
    const int64_t days = DaysAgo(to, now);
    return FailField(Code::kInvalidArgument, "to_ms",
                     "to_ms is {} ms, {} day{} ago: the action fire delivers the jobs at once", ToMs(to), days,
                     days == 1 ? "" : "s");
  }
  if (to + window <= now + kDelayMax) return {};
  return FailField(Code::kInvalidArgument, "to_ms", "to_ms and over_ms reach beyond ten years from now");
}

template <class Items, class... Args>
Status CheckAll(std::string_view field, const Items& items, const Limits& limits, const Args&... args) {
  TOCSIN_TRY(BatchSize(field, items.size(), limits));
  for (size_t i = 0; i < items.size(); ++i) {
    if (Status status = Validate(items[i], args...); !status) {
      if (items.size() == 1) return status;
      return std::unexpected(std::move(status.error()).Prefixed(fmt::format("{}[{}]", field, i)));
    }
  }
  return {};
}

}  // namespace

Status Validate(const NewJob& job, const Limits& limits, Moment now) {
  if (IsPlain(job, limits, now)) return {};
  TOCSIN_TRY(OptionalName("id", job.id));
  TOCSIN_TRY(OptionalName("key", job.key));
  // A copy is due when the job was, however long ago.
  TOCSIN_TRY(CheckWhen(job, job.restored ? PastDue::kFire : job.past, now));
  if (job.restored) TOCSIN_TRY(CheckRestored(job, now.utc));
  TOCSIN_TRY(InRange("count", job.count, 0U, kCountMax));
  TOCSIN_TRY(InRange("max_attempts", job.max_attempts, 0U, kAttemptsMax));
  TOCSIN_TRY(CheckHeaders(job.headers, limits));
  return CheckPayload(job.payload, limits);
}

Status Validate(const Settlement& settlement, const Limits& limits) {
  if (!settlement.delay && settlement.lease == Millis(0) && settlement.reason.empty()) return {};
  if (settlement.delay) TOCSIN_TRY(InRange("delay", *settlement.delay, kDelayMax));
  TOCSIN_TRY(InRange("lease", settlement.lease, limits.lease_max));
  return CheckReason(settlement.reason);
}

Status Validate(const JobRef& job) {
  TOCSIN_TRY(ValidateName("id", job.id));
  return OptionalName("key", job.key);
}

Status Validate(const Amendment& amendment, const Limits& limits, Moment now) {
  TOCSIN_TRY(Validate(amendment.job));
  if (amendment.kind == AmendKind::kReschedule) {
    TOCSIN_TRY(CheckWhen(amendment, amendment.past, now));
  }
  return amendment.payload ? CheckPayload(*amendment.payload, limits) : Status{};
}

Status Validate(const CountEvent& event) {
  TOCSIN_TRY(Validate(event.job));
  TOCSIN_TRY(ValidateName("event", event.event));
  return InRange("by", event.by, 1U, kCountMax);
}

Status Validate(const SubmitRequest& request, const Limits& limits, Moment now) {
  return CheckAll("jobs", request.jobs, limits, limits, now);
}

Status Validate(const ReserveRequest& request, const Limits& limits) {
  TOCSIN_TRY(ValidateTopicName(request.topic));
  TOCSIN_TRY(InRange("max", request.max, size_t{1}, limits.batch));
  TOCSIN_TRY(InRange("wait", request.wait, limits.wait_max));
  TOCSIN_TRY(CheckConsumer(request.consumer));
  return InRange("lease", request.lease, limits.lease_max);
}

Status Validate(const SettleRequest& request, const Limits& limits) {
  return CheckAll("tokens", request.settlements, limits, limits);
}

Status Validate(const AmendRequest& request, const Limits& limits, Moment now) {
  return CheckAll("jobs", request.amendments, limits, limits, now);
}

Status Validate(const CountRequest& request, const Limits& limits) {
  return CheckAll("events", request.events, limits);
}

Status Validate(const FindRequest& request, const Limits& limits) { return CheckAll("jobs", request.jobs, limits); }

Status Validate(const ListRequest& request) { return InRange("limit", request.limit, size_t{1}, kPageMax); }

Status Validate(const Selector& what) {
  TOCSIN_TRY(CheckUnit("due_from_ms", what.due.from));
  TOCSIN_TRY(CheckUnit("due_to_ms", what.due.to));
  TOCSIN_TRY(CheckUnit("created_from_ms", what.created.from));
  TOCSIN_TRY(CheckUnit("created_to_ms", what.created.to));
  TOCSIN_TRY(CheckUnit("died_from_ms", what.died.from));
  return CheckUnit("died_to_ms", what.died.to);
}

Status Validate(const OperateRequest& request, Moment now) {
  if (request.what.Empty() && !request.all) {
    return FailField(Code::kInvalidArgument, "where", "where is empty: say all if every job of the topic is meant");
  }
  const bool reschedules = request.action == JobAction::kReschedule;
  if (reschedules && request.to.has_value() == request.shift.has_value()) {
    return FailField(Code::kInvalidArgument, "to_ms", "a reschedule takes one of to_ms and shift_ms");
  }
  if (!reschedules && (request.to || request.shift || request.window)) {
    return FailField(Code::kInvalidArgument,
                     request.to      ? "to_ms"
                     : request.shift ? "shift_ms"
                                     : "over_ms",
                     "only a reschedule takes to_ms, shift_ms and over_ms");
  }
  if (request.window && !request.to) {
    return FailField(Code::kInvalidArgument, "over_ms", "over_ms needs to_ms, where it begins");
  }
  if (request.to) TOCSIN_TRY(CheckTarget(*request.to, request.window.value_or(Millis(0)), now.utc));
  if ((request.action == JobAction::kAttempts) != (request.max_attempts > 0)) {
    return FailField(Code::kInvalidArgument, "max_attempts",
                     "max_attempts belongs to the action attempts, which needs it");
  }
  return {};
}

}  // namespace tocsin
