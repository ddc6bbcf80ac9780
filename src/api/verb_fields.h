// The fields that each verb takes. Only verbs.cc includes this.
#pragma once

#include "api/verbs.h"
#include "model/names.h"
#include "model/topic.h"

namespace tocsin::api {

inline constexpr int64_t kNameMax = 256;
inline constexpr std::string_view kOnConflictNames[] = {"reject", "replace", "keep"};  // in the order of OnConflict

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
inline constexpr Field kPayload = {.name = "payload",
                                   .kind = FieldKind::kPayload,
                                   .doc = "The payload as text.",
                                   .excludes_next = true,
                                   .member = &Arguments::payload};
inline constexpr Field kNewPayload = {.name = "payload",
                                      .kind = FieldKind::kPayload,
                                      .doc = "The payload as text.",
                                      .word = "PAYLOAD",
                                      .excludes_next = true,
                                      .member = &Arguments::payload};
inline constexpr Field kPayloadBase64 = {.name = "payload_base64",
                                         .kind = FieldKind::kBase64,
                                         .doc = "The payload as base64 with padding (RFC 4648).",
                                         .member = &Arguments::payload};
inline constexpr Field kKeyOfJob = {.name = "key",
                                    .doc = "The key of a job that has its own id and a key.",
                                    .word = "KEY",
                                    .flag = "key",
                                    .in = In::kQuery,
                                    .member = &NewJob::key};

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

inline constexpr Field kAmend[] = {kKeyOfJob, kDelay, kDue, kNewPayload, kPayloadBase64};

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

inline constexpr Field kList[] = {
    {.name = "state",
     .kind = FieldKind::kChoice,
     .doc = "The state of the jobs to list.",
     .fallback = "\"scheduled\"",
     .choices = kStateNames,
     .word = "STATE",
     .flag = "state",
     .in = In::kQuery,
     .member = &Arguments::state},
    {.name = "limit",
     .kind = FieldKind::kNumber,
     .min = 1,
     .max = kPageMax,
     .doc = "The most jobs on a page.",
     .fallback = "100",
     .word = "LIMIT",
     .flag = "limit",
     .in = In::kQuery,
     .member = &Arguments::limit},
    {.name = "cursor",
     .doc = "The cursor of the page before.",
     .word = "CURSOR",
     .flag = "cursor",
     .in = In::kQuery,
     .member = &Arguments::cursor},
    {.name = "reason",
     .doc = "Only jobs whose reason contains this text. A page may then be empty though more follow.",
     .word = "REASON",
     .flag = "reason",
     .in = In::kQuery,
     .member = &Arguments::reason},
};

inline constexpr Field kAdvance[] = {{.name = "ms",
                                      .kind = FieldKind::kMillis,
                                      .max = kDelayMax.count(),
                                      .doc = "How far to move the clock.",
                                      .flag = "by",
                                      .required = true,
                                      .member = &Arguments::advance_ms}};

inline constexpr Field kPurge[] = {{.name = "dead",
                                    .kind = FieldKind::kFlag,
                                    .doc = "The dead letters alone.",
                                    .word = "DEAD",
                                    .in = In::kResp,
                                    .member = &Arguments::dead}};

}  // namespace tocsin::api
