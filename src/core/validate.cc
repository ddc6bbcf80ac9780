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

Status CheckWhen(Timeline timeline, Millis delay, Time due, Moment now) {
  if (timeline == Timeline::kSteady) return InRange("delay", delay, kDelayMax);
  // A time before 1970 is a mistake of the caller, not a late job.
  return InRange("due", ToMs(due), int64_t{0}, ToMs(now.utc + kDelayMax), " ms");
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

bool WhenFits(Timeline timeline, Millis delay, Time due, Moment now) {
  if (timeline == Timeline::kSteady) return delay >= Millis(0) && delay <= kDelayMax;
  return ToMs(due) >= 0 && due <= now.utc + kDelayMax;
}

/// Most jobs are valid and have no names and no headers. This finds that with a few comparisons instead of as many
/// results. Every job that it accepts is valid.
bool IsPlain(const NewJob& job, const Limits& limits, Moment now) {
  return job.id.empty() && job.key.empty() && job.headers.empty() && job.count <= kCountMax &&
         job.max_attempts <= kAttemptsMax && job.payload.size() <= limits.payload_bytes &&
         WhenFits(job.timeline, job.delay, job.due, now);
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
  TOCSIN_TRY(CheckWhen(job.timeline, job.delay, job.due, now));
  TOCSIN_TRY(InRange("count", job.count, 0U, kCountMax));
  TOCSIN_TRY(InRange("max_attempts", job.max_attempts, 0U, kAttemptsMax));
  TOCSIN_TRY(CheckHeaders(job.headers, limits));
  return CheckPayload(job.payload, limits);
}

Status Validate(const Settlement& settlement, const Limits& limits) {
  if (!settlement.delay && settlement.lease == Millis(0) && settlement.reason.empty()) return {};
  if (settlement.delay) TOCSIN_TRY(InRange("delay", *settlement.delay, kDelayMax));
  TOCSIN_TRY(InRange("lease", settlement.lease, limits.lease_max));
  if (settlement.reason.size() <= kReasonBytesMax) return {};
  return FailField(Code::kTooLarge, "reason", "reason has {} bytes: the most is {}", settlement.reason.size(),
                   kReasonBytesMax);
}

Status Validate(const JobRef& job) {
  TOCSIN_TRY(ValidateName("id", job.id));
  return OptionalName("key", job.key);
}

Status Validate(const Amendment& amendment, const Limits& limits, Moment now) {
  TOCSIN_TRY(Validate(amendment.job));
  if (amendment.kind == AmendKind::kReschedule) {
    TOCSIN_TRY(CheckWhen(amendment.timeline, amendment.delay, amendment.due, now));
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

Status Validate(const ListRequest& request, const Limits& limits) {
  return InRange("limit", request.limit, size_t{1}, limits.batch);
}

}  // namespace tocsin
