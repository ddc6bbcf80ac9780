// The fields that the verbs about jobs take. Only verbs.cc includes this.
#pragma once

#include <algorithm>
#include <array>

#include "api/verbs.h"
#include "model/names.h"
#include "model/topic.h"

namespace tocsin::api {

inline constexpr int64_t kNameMax = 256;
inline constexpr std::string_view kOnConflictNames[] = {"reject", "replace", "keep"};  // in the order of OnConflict

inline constexpr std::string_view kPastNames[] = {"refuse", "fire"};  // in the order of PastDue

inline constexpr std::string_view kPayloadDoc =
    "The payload as text. An object, an array, a number, true or false is delivered as the JSON text that was sent.";

inline constexpr Field kDelay = {.name = "delay_ms",
                                 .kind = FieldKind::kMillis,
                                 .max = kDelayMax.count(),
                                 .doc = "How long from now, at most ten years.",
                                 .word = "DELAY",
                                 .flag = "in",
                                 .excludes_next = true,
                                 .member = &Arguments::delay_ms};
inline constexpr Field kDue = {.name = "due_ms",
                               .kind = FieldKind::kMoment,
                               .max = std::numeric_limits<int64_t>::max() - 1,  // below kNever
                               .doc = "The due time itself, in milliseconds UTC. A time that has passed counts as now.",
                               .word = "AT",
                               .flag = "at",
                               .member = &Arguments::due_ms};
inline constexpr Field kPast = {
    .name = "past",
    .kind = FieldKind::kChoice,
    .doc = "What to do if due_ms is more than a day ago: refuse it as a mistake, or deliver the job at once.",
    .fallback = "\"refuse\"",
    .choices = kPastNames,
    .word = "PAST",
    .flag = "past",
    .member = &Arguments::past};
inline constexpr Field kPayload = {.name = "payload",
                                   .kind = FieldKind::kPayload,
                                   .doc = kPayloadDoc,
                                   .excludes_next = true,
                                   .member = &Arguments::payload};
inline constexpr Field kNewPayload = {.name = "payload",
                                      .kind = FieldKind::kPayload,
                                      .doc = kPayloadDoc,
                                      .word = "PAYLOAD",
                                      .excludes_next = true,
                                      .member = &Arguments::payload};
inline constexpr Field kPayloadBase64 = {.name = "payload_base64",
                                         .kind = FieldKind::kBase64,
                                         .doc = "The payload as base64 with padding (RFC 4648).",
                                         .member = &Arguments::payload};
inline constexpr Field kKeyOfJob = {.name = "key",
                                    .kind = FieldKind::kName,
                                    .min = 1,
                                    .max = kNameMax,
                                    .doc = "The key of a job that has its own id and a key.",
                                    .word = "KEY",
                                    .flag = "key",
                                    .in = In::kQuery,
                                    .member = &NewJob::key};

inline constexpr std::string_view kRestoredNames[] = {"scheduled", "dead"};  // in the order of false and true

constexpr Field TimeOfRestored(std::string_view name, std::string_view word, std::string_view doc,
                               Time Restored::* member) {
  return {.name = name,
          .kind = FieldKind::kMoment,
          .max = std::numeric_limits<int64_t>::max() - 1,
          .doc = doc,
          .word = word,
          .member = member};
}

inline constexpr Field kSubmit[] = {
    {.name = "id",
     .kind = FieldKind::kName,
     .min = 1,
     .max = kNameMax,
     .doc = "Your own id. Submitting it again with the same content stores nothing. Without one the server gives one.",
     .word = "ID",
     .flag = "id",
     .member = &NewJob::id},
    {.name = "key",
     .kind = FieldKind::kName,
     .min = 1,
     .max = kNameMax,
     .doc = "Jobs with the same key share a slot, and so keep their order.",
     .word = "KEY",
     .flag = "key",
     .member = &NewJob::key},
    kDelay,
    kDue,
    kPast,
    kPayload,
    kPayloadBase64,
    {.name = "headers",
     .kind = FieldKind::kHeaders,
     .doc = "Texts that travel with the job: at most 32, 8 KiB together.",
     .word = "HEADER",
     .flag = "header"},
    {.name = "trigger",
     .kind = FieldKind::kChoice,
     .doc = "What makes the job ready: its time, a number of events, or whichever comes first.",
     .fallback = "\"time\"",
     .choices = kTriggerNames,
     .word = "TRIGGER",
     .flag = "trigger",
     .member = &NewJob::trigger},
    {.name = "count",
     .kind = FieldKind::kNumber,
     .min = 1,
     .max = kCountMax,
     .doc = "Events to wait for. The topic's count_limit unless given.",
     .word = "COUNT",
     .flag = "count",
     .member = &NewJob::count},
    {.name = "max_attempts",
     .kind = FieldKind::kNumber,
     .min = 1,
     .max = kAttemptsMax,
     .doc = "Deliveries before the job becomes a dead letter. The topic's unless given.",
     .word = "ATTEMPTS",
     .flag = "attempts",
     .member = &NewJob::max_attempts},
    {.name = "on_conflict",
     .kind = FieldKind::kBareChoice,
     .doc = "What to do if the id is stored with other content: answer a conflict, replace that job, or keep it.",
     .fallback = "\"reject\"",
     .choices = kOnConflictNames,
     .flag = "on-conflict",
     .member = &NewJob::on_conflict},
    // Of copies. The names are those of a listing. No flags: the command line restores jobs with import.
    {.name = "state",
     .kind = FieldKind::kChoice,
     .doc = "Of a copy: whether it waits, or is a dead letter.",
     .fallback = "\"scheduled\"",
     .choices = kRestoredNames,
     .word = "STATE",
     .member = &Restored::dead},
    {.name = "attempt",
     .kind = FieldKind::kNumber,
     .max = kAttemptsMax,
     .doc = "Of a copy: the attempts used up.",
     .fallback = "0",
     .word = "USED-ATTEMPTS",
     .member = &Restored::attempts},
    {.name = "reason",
     .max = kReasonBytesMax,
     .doc = "Of a copy: why its last attempt failed.",
     .word = "REASON",
     .member = &Restored::reason},
    TimeOfRestored("created_ms", "CREATED", "Of a copy: when the job was submitted first.", &Restored::created),
    TimeOfRestored("last_attempt_ms", "LAST-ATTEMPT", "Of a copy: when its last attempt began.",
                   &Restored::last_attempt),
    TimeOfRestored("died_ms", "DIED", "Of a copy: when it became a dead letter. Now unless given.", &Restored::died),
};

inline constexpr Field kReserve[] = {
    {.name = "max",
     .kind = FieldKind::kNumber,
     .min = 1,
     .max = kBatchMax,
     .doc = "The most jobs to take.",
     .fallback = "1",
     .word = "MAX",
     .flag = "max",
     .member = &Arguments::max},
    {.name = "wait_ms",
     .kind = FieldKind::kMillis,
     .max = kWaitMax.count(),
     .doc = "How long to wait for the first job.",
     .fallback = "0",
     .word = "WAIT",
     .flag = "wait",
     .member = &Arguments::wait_ms},
    {.name = "lease_ms",
     .kind = FieldKind::kMillis,
     .min = 1,
     .max = kLeaseMax.count(),
     .doc = "How long the deliveries are leased. The topic's lease unless given.",
     .word = "LEASE",
     .flag = "lease",
     .member = &Arguments::lease_ms},
    {.name = "consumer",
     .kind = FieldKind::kName,
     .min = 1,
     .max = kHolderBytesMax,
     .doc = "The name of the consumer, shown as the holder of the leases. Its address unless given.",
     .word = "CONSUMER",
     .flag = "consumer",
     .member = &Arguments::consumer},
};

inline constexpr Field kTokens = {
    .name = "tokens", .kind = FieldKind::kTokens, .doc = "Delivery tokens that a reserve gave out.", .required = true};

inline constexpr Field kAck[] = {kTokens};

inline constexpr Field kNack[] = {
    kTokens,
    {.name = "delay_ms",
     .kind = FieldKind::kMillis,
     .max = kDelayMax.count(),
     .doc = "How long until the next attempt. The topic's back-off unless given.",
     .word = "DELAY",
     .flag = "in",
     .excludes_next = true,
     .member = &Arguments::delay_ms},
    {.name = "dead",
     .kind = FieldKind::kFlag,
     .doc = "Make the job a dead letter at once, whatever attempts are left.",
     .fallback = "false",
     .word = "DEAD",
     .flag = "dead",
     .member = &Arguments::dead},
    {.name = "reason",
     .max = kReasonBytesMax,
     .doc = "Why. It is kept with the job.",
     .word = "REASON",
     .flag = "reason",
     .member = &Arguments::reason},
};

inline constexpr Field kExtend[] = {
    kTokens,
    {.name = "lease_ms",
     .kind = FieldKind::kMillis,
     .min = 1,
     .max = kLeaseMax.count(),
     .doc = "How long from now. The topic's lease unless given.",
     .word = "LEASE",
     .flag = "lease",
     .member = &Arguments::lease_ms},
};

inline constexpr Field kKeyAlone[] = {kKeyOfJob};

inline constexpr Field kRevoke[] = {
    kKeyOfJob,
    {.name = "attempt",
     .kind = FieldKind::kNumber,
     .min = 1,
     .max = kAttemptsMax,
     .doc = "Only the lease of this attempt: of a later one the outcome is changed_meanwhile.",
     .word = "ATTEMPT",
     .flag = "attempt",
     .in = In::kQuery,
     .member = &Arguments::attempt},
};

inline constexpr Field kAmend[] = {
    kKeyOfJob,
    kDelay,
    kDue,
    kPast,
    kNewPayload,
    kPayloadBase64,
    {.name = "attempt",
     .kind = FieldKind::kNumber,
     .max = kAttemptsMax,
     .doc = "Only if the job shows this attempt: otherwise the outcome is changed_meanwhile.",
     .word = "ATTEMPT",
     .flag = "attempt",
     .member = &Arguments::attempt},
};

inline constexpr Field kCount[] = {
    kKeyOfJob,
    {.name = "event",
     .kind = FieldKind::kName,
     .min = 1,
     .max = kNameMax,
     .doc = "The event's id. An event that was counted before does not count again.",
     .flag = "event",
     .required = true,
     .member = &Arguments::event},
    {.name = "by",
     .kind = FieldKind::kNumber,
     .min = 1,
     .max = kCountMax,
     .doc = "How much the event counts.",
     .fallback = "1",
     .word = "BY",
     .flag = "by",
     .member = &Arguments::by},
};

inline constexpr Field kLimit = {.name = "limit",
                                 .kind = FieldKind::kNumber,
                                 .min = 1,
                                 .max = kPageMax,
                                 .doc = "The most jobs on a page.",
                                 .fallback = "100",
                                 .word = "LIMIT",
                                 .flag = "limit",
                                 .in = In::kQuery,
                                 .member = &Arguments::limit};
inline constexpr Field kCursor = {.name = "cursor",
                                  .doc = "The cursor of the page before.",
                                  .word = "CURSOR",
                                  .flag = "cursor",
                                  .in = In::kQuery,
                                  .member = &Arguments::cursor};

/// A bound of a time: `kRange` is one of the selector's ranges.
template <auto kRange, auto kBound>
void SetBound(Selector& to, int64_t ms) {
  (to.*kRange).*kBound = FromMs(ms);
}

template <auto kNumber>
void SetCount(Selector& to, int64_t number) {
  to.*kNumber = static_cast<uint32_t>(number);
}

inline void AddState(Selector& to, std::string_view name) {
  const auto at = static_cast<size_t>(std::ranges::find(kSelectStateNames, name) - std::begin(kSelectStateNames));
  to.states.Add(at < std::size(kStateNames) ? StateSet::Of(static_cast<State>(at)) : StateSet::Ready());
}

inline void SetHeader(Selector& to, std::string_view text) {
  const size_t equals = text.find('=');
  to.header = text.substr(0, equals);
  if (equals != std::string_view::npos) to.header_value = text.substr(equals + 1);
}

constexpr Field TimeField(std::string_view name, std::string_view word, std::string_view flag, std::string_view doc,
                          SetNumber set) {
  return {.name = name,
          .kind = FieldKind::kMoment,
          .max = std::numeric_limits<int64_t>::max() - 1,
          .doc = doc,
          .word = word,
          .flag = flag,
          .in = In::kWhere,
          .member = set};
}

constexpr Field TextField(std::string_view name, std::string_view word, std::string_view flag, std::string_view doc,
                          std::string Selector::* member, int64_t max = kReasonBytesMax) {
  return {.name = name,
          .kind = FieldKind::kName,
          .min = 1,
          .max = max,
          .doc = doc,
          .word = word,
          .flag = flag,
          .in = In::kWhere,
          .member = member};
}

inline constexpr std::array kSelector = {
    Field{.name = "state",
          .kind = FieldKind::kNames,
          .doc = "Jobs in one of these states. `ready` is scheduled and due. Without it, all states.",
          .choices = kSelectStateNames,
          .word = "STATE",
          .flag = "state",
          .in = In::kWhere,
          .member = SetText(AddState)},
    Field{.name = "ids",
          .kind = FieldKind::kNames,
          .doc = "Jobs with one of these ids, at most 1000. With own ids and a key, also give the key.",
          .word = "IDS",
          .flag = "ids",
          .in = In::kWhere,
          .member = SetText([](Selector& to, std::string_view id) { to.ids.emplace_back(id); })},
    TextField("id_prefix", "PREFIX", "id-prefix", "Jobs whose ids begin with this text.", &Selector::id_prefix),
    TextField("key", "KEY", "key", "Jobs with this key.", &Selector::key, kNameMax),
    Field{.name = "header",
          .kind = FieldKind::kName,
          .min = 1,
          .max = kReasonBytesMax,
          .doc = "Jobs with this header: name=value, or the name alone for any value.",
          .word = "HEADER",
          .flag = "header",
          .in = In::kWhere,
          .member = SetText(SetHeader)},
    TextField("payload", "PAYLOAD", "payload", "Jobs whose payloads contain this text.", &Selector::payload),
    TextField("reason", "REASON", "reason", "Jobs whose reasons contain this text.", &Selector::reason),
    TextField("reason_is", "REASON-IS", "reason-is", "Jobs whose reasons are this text, neither more nor less.",
              &Selector::reason_is),
    TextField("holder", "HOLDER", "holder", "Jobs that this consumer holds.", &Selector::holder),
    TimeField("due_from_ms", "DUE-FROM", "due-from", "Jobs that are due at this time or later.",
              SetBound<&Selector::due, &TimeRange::from>),
    TimeField("due_to_ms", "DUE-TO", "due-to", "Jobs that are due before this time.",
              SetBound<&Selector::due, &TimeRange::to>),
    TimeField("created_from_ms", "CREATED-FROM", "created-from", "Jobs that were created at this time or later.",
              SetBound<&Selector::created, &TimeRange::from>),
    TimeField("created_to_ms", "CREATED-TO", "created-to", "Jobs that were created before this time.",
              SetBound<&Selector::created, &TimeRange::to>),
    TimeField("died_from_ms", "DIED-FROM", "died-from", "Dead letters that died at this time or later.",
              SetBound<&Selector::died, &TimeRange::from>),
    TimeField("died_to_ms", "DIED-TO", "died-to", "Dead letters that died before this time.",
              SetBound<&Selector::died, &TimeRange::to>),
    Field{.name = "attempts_min",
          .kind = FieldKind::kNumber,
          .max = kAttemptsMax,
          .doc = "Jobs with so many attempts or more.",
          .word = "ATTEMPTS-MIN",
          .flag = "attempts-min",
          .in = In::kWhere,
          .member = SetNumber(SetCount<&Selector::attempts_min>)},
    Field{.name = "attempts_max",
          .kind = FieldKind::kNumber,
          .max = kAttemptsMax,
          .doc = "Jobs with so many attempts or fewer.",
          .word = "ATTEMPTS-MAX",
          .flag = "attempts-max",
          .in = In::kWhere,
          .member = SetNumber(SetCount<&Selector::attempts_max>)},
};

/// The selector's fields, and then the verb's own.
template <size_t kOwn>
constexpr auto WithSelector(const Field (&own)[kOwn]) {
  std::array<Field, kSelector.size() + kOwn> all;
  std::ranges::copy(own, std::ranges::copy(kSelector, all.begin()).out);
  return all;
}

inline constexpr Field kListOwn[] = {
    {.name = "sort",
     .kind = FieldKind::kChoice,
     .doc = "The order: none, by due time, or by the time of creation. A sorted page looks at all jobs of the topic.",
     .fallback = "\"none\"",
     .choices = kSortNames,
     .word = "SORT",
     .flag = "sort",
     .in = In::kQuery,
     .member = &Arguments::sort},
    kLimit,
    kCursor,
};
inline constexpr auto kList = WithSelector(kListOwn);

inline constexpr Field kTallyOwn[] = {
    {.name = "by",
     .kind = FieldKind::kChoice,
     .doc = "What to count the jobs by. A minute is that of the due time, in ms UTC.",
     .fallback = "\"nothing\"",
     .choices = kTallyByNames,
     .word = "BY",
     .flag = "by",
     .in = In::kQuery,
     .member = &Arguments::by_what},
    {.name = "by_header",
     .kind = FieldKind::kName,
     .min = 1,
     .max = kNameMax,
     .doc = "The name of the header, to count by its values.",
     .word = "BY-HEADER",
     .flag = "by-header",
     .in = In::kQuery,
     .member = &Arguments::by_header},
};
inline constexpr auto kTally = WithSelector(kTallyOwn);

inline constexpr Field kOperateOwn[] = {
    {.name = "action",
     .kind = FieldKind::kChoice,
     .doc = "What to do with each job.",
     .choices = kActionNames,
     .required = true,
     .member = &Arguments::action},
    {.name = "all",
     .kind = FieldKind::kFlag,
     .doc = "Needed if nothing else says which jobs.",
     .fallback = "false",
     .word = "ALL",
     .flag = "all",
     .member = &Arguments::all},
    {.name = "dry_run",
     .kind = FieldKind::kFlag,
     .doc = "Change nothing: answer how many jobs match, with five of them.",
     .fallback = "false",
     .word = "DRY-RUN",
     .flag = "dry-run",
     .member = &Arguments::dry_run},
    {.name = "shift_ms",
     .kind = FieldKind::kMillis,
     .min = -kDelayMax.count(),
     .max = kDelayMax.count(),
     .doc = "Reschedule: by so much later, or earlier if it is negative.",
     .word = "SHIFT",
     .flag = "shift",
     .excludes_next = true,
     .member = &Arguments::shift_ms},
    {.name = "to_ms",
     .kind = FieldKind::kMoment,
     .max = std::numeric_limits<int64_t>::max() - 1,
     .doc = "Reschedule: to this time.",
     .word = "TO",
     .flag = "to",
     .member = &Arguments::to_ms},
    {.name = "over_ms",
     .kind = FieldKind::kMillis,
     .min = 1,
     .max = kDelayMax.count(),
     .doc = "Reschedule: spread evenly over so long, from to_ms on.",
     .word = "OVER",
     .flag = "over",
     .member = &Arguments::over_ms},
    {.name = "max_attempts",
     .kind = FieldKind::kNumber,
     .min = 1,
     .max = kAttemptsMax,
     .doc = "Attempts: how many deliveries each job may have.",
     .word = "ATTEMPTS",
     .flag = "attempts",
     .member = &Arguments::max_attempts},
    {.name = "rate",
     .kind = FieldKind::kNumber,
     .min = 1,
     .max = 1'000'000,
     .doc = "At most so many jobs a second.",
     .word = "RATE",
     .flag = "rate",
     .member = &Arguments::rate},
    {.name = "matched_max",
     .kind = FieldKind::kNumber,
     .doc = "The most jobs to change. If one more matches, the operation fails before it changes that one.",
     .word = "MATCHED-MAX",
     .flag = "matched-max",
     .member = &Arguments::matched_max},
};
inline constexpr auto kOperate = WithSelector(kOperateOwn);

inline constexpr Field kListOfLeases[] = {
    {.name = "holder",
     .kind = FieldKind::kName,
     .min = 1,
     .max = kHolderBytesMax,
     .doc = "Only the leases of this holder.",
     .word = "HOLDER",
     .flag = "holder",
     .in = In::kQuery,
     .member = &Selector::holder},
    kLimit,
    kCursor,
};

inline constexpr Field kPurge[] = {{.name = "dead",
                                    .kind = FieldKind::kFlag,
                                    .doc = "The dead letters alone.",
                                    .word = "DEAD",
                                    .in = In::kResp,
                                    .member = &Arguments::dead}};

}  // namespace tocsin::api
