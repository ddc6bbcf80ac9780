#include "outbox/row.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/text.h"
#include "core/validate.h"
#include "model/topic.h"

namespace tocsin::outbox {
namespace {

namespace json = boost::json;

/// The database rounds `created` down to a millisecond, and no delay may be too short.
constexpr Millis kRounding{1};

/// The same whenever the row is read, so that reading it again makes no second job. With the time of the row: a table
/// that was emptied may begin to count at 1 again.
std::string MakeId(const Row& row, const Rules& rules) {
  return fmt::format("outbox-{}-{}-{}", rules.identity, row.id, ToMs(row.created));
}

Status CheckTopic(const Row& row, const Rules& rules) {
  TOCSIN_TRY(ValidateTopicName(row.topic));
  if (row.topic.starts_with(rules.prefix)) return {};
  return FailField(Code::kForbidden, "topic",
                   "topic is {}: the server's outbox.prefix allows topics that begin with {}", Shown(row.topic),
                   rules.prefix);
}

Status ReadHeaders(Entry& entry, const Limits& limits) {
  if (!entry.row.headers) return {};
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = 2;
  const json::value parsed = json::parse(*entry.row.headers, error, {}, options);
  if (error) return FailField(Code::kInvalidArgument, "headers", "headers is not JSON: {}", error.message());
  const json::object* const object = parsed.if_object();
  if (object == nullptr) {
    return FailField(Code::kInvalidArgument, "headers",
                     "headers is not an object of JSON, such as {{\"trace\":\"7f\"}}");
  }
  // As Validate says it, before there are copies of what may be thousands.
  if (object->size() > limits.headers) {
    return FailField(Code::kTooLarge, "headers", "headers has {} entries: the most is {}", object->size(),
                     limits.headers);
  }
  for (const auto& [name, value] : *object) {
    const json::string* const text = value.if_string();
    if (text == nullptr) {
      return FailField(Code::kInvalidArgument, "headers", "the value of the header {} is not a text",
                       Shown(std::string_view(name)));
    }
    entry.headers.emplace_back(std::string(name), std::string(*text));
  }
  for (const auto& [name, value] : entry.headers) entry.job.headers.push_back({name, value});
  return {};
}

Status ReadTime(Entry& entry, const Rules& rules, Millis ahead) {
  const Row& row = entry.row;
  if (row.delay_ms && row.due_ms) {
    return FailField(Code::kInvalidArgument, "due_ms", "the row has both delay_ms and due_ms: it takes one of them");
  }
  NewJob& job = entry.job;
  job.timeline = row.due_ms ? Timeline::kUtc : Timeline::kSteady;
  job.due = FromMs(row.due_ms.value_or(0));
  job.delay = Millis(row.delay_ms.value_or(0));
  // The row may have waited for long: what was right when it was inserted is right now.
  TOCSIN_TRY(Validate(job, rules.limits, Moment{.utc = row.created, .steady = row.created}));
  job.past = PastDue::kFire;
  if (row.due_ms || !row.delay_ms || rules.from_pick_up) return {};
  // A moment, and not what is left of the delay: a row that is read twice has to ask for the same.
  job.timeline = Timeline::kUtc;
  job.due = row.created + ahead + job.delay + kRounding;
  return {};
}

Status ReadTrigger(Entry& entry) {
  const Row& row = entry.row;
  if (!row.event_count) return {};
  if (*row.event_count < 1 || *row.event_count > kCountMax) {
    return FailField(Code::kInvalidArgument, "event_count", "event_count is {}: the range is 1 to {}", *row.event_count,
                     kCountMax);
  }
  entry.job.count = static_cast<uint32_t>(*row.event_count);
  entry.job.trigger = row.delay_ms || row.due_ms ? Trigger::kEither : Trigger::kCount;
  return {};
}

Status DecodeSubmit(Entry& entry, const Rules& rules, Millis ahead) {
  const Row& row = entry.row;
  if (row.payload_bytes > rules.limits.payload_bytes) {
    return FailField(Code::kTooLarge, "payload", "payload has {} bytes: the most is {}", row.payload_bytes,
                     rules.limits.payload_bytes);
  }
  entry.id = row.job_id.empty() ? MakeId(row, rules) : row.job_id;
  NewJob& job = entry.job;
  job.id = entry.id;
  job.key = row.job_key;
  job.payload = row.payload;
  job.on_conflict = row.job_id.empty() ? OnConflict::kKeep : OnConflict::kReject;
  TOCSIN_TRY(ReadHeaders(entry, rules.limits));
  TOCSIN_TRY(ReadTrigger(entry));
  return ReadTime(entry, rules, ahead);
}

Status DecodeCancel(Entry& entry) {
  const Row& row = entry.row;
  entry.cancel = true;
  if (row.job_id.empty()) return FailField(Code::kInvalidArgument, "job_id", "a cancel needs job_id");
  entry.id = row.job_id;
  entry.ref = {.id = entry.id, .key = row.job_key};
  return Validate(entry.ref);
}

}  // namespace

Status Decode(Entry& entry, const Rules& rules, Millis ahead) {
  TOCSIN_TRY(CheckTopic(entry.row, rules));
  if (entry.row.op == "submit") return DecodeSubmit(entry, rules, ahead);
  if (entry.row.op == "cancel") return DecodeCancel(entry);
  return FailField(Code::kInvalidArgument, "op", "op is {}: it is submit or cancel", Shown(entry.row.op));
}

}  // namespace tocsin::outbox
