// A job and everything that can be said to or of one: the values that front ends, core and stores exchange. Views
// (string_view, span) are valid only during the call that they are passed to, unless a struct says what owns them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/time.h"

namespace tocsin {

enum class State : uint8_t { kScheduled = 0, kLeased = 1, kDead = 2, kDone = 3, kCancelled = 4 };

enum class Trigger : uint8_t { kTime = 0, kCount = 1, kEither = 2 };

enum class OnConflict : uint8_t { kReject = 0, kReplace = 1, kKeep = 2 };

constexpr Millis kDelayMax = std::chrono::days(3653);  // ten years
constexpr size_t kReasonBytesMax = 1024;
constexpr size_t kBatchMax = 100'000;  // jobs or tokens in one call, whatever limits.batch says
constexpr size_t kHeadersMax = 32;
constexpr Millis kWaitMax{60'000};  // of a long poll
constexpr Millis kLeaseMax = std::chrono::hours(12);
constexpr size_t kPageMax = 1000;  // jobs on a page of a list

struct HeaderView {
  std::string_view name;
  std::string_view value;
};

/// What is asked for when a job is submitted.
struct NewJob {
  std::string_view id;   // empty: the server gives one
  std::string_view key;  // places the job on a slot; empty: the id does
  Timeline timeline = Timeline::kSteady;
  Millis delay{0};  // on kSteady: from now
  Time due{};       // on kUtc: the moment itself; one that has passed counts as now
  Trigger trigger = Trigger::kTime;
  uint32_t count = 0;         // events to wait for; 0: the topic's count_limit
  uint32_t max_attempts = 0;  // 0: the topic's
  OnConflict on_conflict = OnConflict::kReject;
  std::vector<HeaderView> headers;
  std::string_view payload;
  uint32_t slot = 0;  // set by the service: SlotFor(key, id, slots), or any slot if both are empty
};

enum class SubmitOutcome : uint8_t {
  kAccepted,      // stored (with kReplace: instead of the job that had the id)
  kDuplicate,     // the same id with the same content is stored already; or kKeep was asked
  kConflict,      // the id is stored with other content
  kInFlight,      // kReplace was asked, but the job that has the id is leased
  kOverCapacity,  // the topic or the node is full
  kStorageFull,   // the disk is full
  kOverloaded,    // the shard's mailbox is full: nothing was done, try again
};

struct Submitted {
  SubmitOutcome outcome = SubmitOutcome::kAccepted;
  Uid uid = 0;  // of the stored job; with kOverCapacity, kStorageFull and kOverloaded 0
  Time due{};   // in UTC
};

/// Names a job: by server id, or by own id and the key it was submitted with.
struct JobRef {
  std::string_view id;
  std::string_view key;
};

/// Proves a delivery: only the current lease's token settles. `fence` never repeats, across restarts too.
struct Token {
  uint32_t slot = 0;
  uint64_t handle = 0;  // the store's own
  uint64_t fence = 0;

  friend bool operator==(const Token&, const Token&) = default;
};
std::string TokenText(const Token& token);
std::optional<Token> ParseToken(std::string_view text);

/// A job as it is shown or delivered. Its views point into the batch that holds it.
struct JobView {
  Uid uid = 0;
  std::string_view own_id;  // empty if the server gave the id
  std::string_view key;
  State state = State::kScheduled;
  Time due{};  // in UTC; kNever for a job that waits for a count alone
  Trigger trigger = Trigger::kTime;
  uint32_t count_left = 0;
  uint32_t attempt = 0;  // of this delivery; elsewhere: attempts used up
  uint32_t max_attempts = 0;
  std::string_view reason;  // why it is dead, or why its last attempt failed
  std::vector<HeaderView> headers;
  std::string_view payload;
  Token token;            // when delivered
  Time lease_deadline{};  // in UTC, when leased

  std::string Id() const { return own_id.empty() ? UidText(uid) : std::string(own_id); }
};

/// Jobs with the bytes that they point into: one allocation for a batch, however many jobs are in it.
struct JobBatch {
  std::vector<JobView> jobs;
  std::vector<std::unique_ptr<char[]>> bytes;
  bool more = false;     // it ended early because its jobs are large, and there are more
  bool no_room = false;  // of a claim: it is empty because there was no room for the first job
};

/// The bytes that count against a topic's capacity: own id, key, headers and payload.
size_t CountedBytes(const NewJob& job);
size_t CountedBytes(const JobView& job);

/// The texts that a new job brings, as a view of the same bytes.
JobView ViewOf(const NewJob& job);

/// Adds a copy of `job` whose texts the batch owns.
void Append(JobBatch& batch, JobView job);

/// Leaves the jobs whose reason has `text` within.
void KeepWithReason(JobBatch& batch, std::string_view text);

enum class SettleKind : uint8_t {
  kAck,      // done
  kNack,     // try again after `delay` (or the topic's back-off), or dead when no attempt is left
  kExtend,   // the lease runs `lease` from now
  kRelease,  // undo the delivery: due again, and no attempt is used up
  kBury,     // a nack after which no attempt is left, whatever was: dead at once
};

struct Settlement {
  Token token;
  SettleKind kind = SettleKind::kAck;
  std::optional<Millis> delay;  // kNack
  Millis lease{0};              // kExtend; 0: the topic's
  std::string_view reason;      // kNack, kBury
};

enum class SettleOutcome : uint8_t {
  kOk,
  kDead,        // a nack that used up the last attempt, or a bury
  kStale,       // not the current token: nothing changed
  kOverloaded,  // nothing was done, try again
};

enum class AmendKind : uint8_t { kCancel, kReschedule, kPayload, kFire };

struct Amendment {
  JobRef job;
  AmendKind kind = AmendKind::kCancel;
  Timeline timeline = Timeline::kSteady;  // kReschedule: as in NewJob
  Millis delay{0};
  Time due{};
  std::optional<std::string_view> payload;  // kPayload; with kReschedule: both change in one step, or neither
};

enum class AmendOutcome : uint8_t {
  kDone,
  kInFlight,      // leased: a consumer has it; nothing changed
  kFinished,      // done, cancelled (a repeated cancel answers kDone) or dead; nothing changed
  kUnknown,       // no such job is stored
  kOverCapacity,  // the larger payload does not fit
  kStorageFull,
  kOverloaded,  // nothing was done, try again
};

struct Amended {
  AmendOutcome outcome = AmendOutcome::kUnknown;
  Time due{};  // in UTC, after kReschedule and kFire
};

struct CountEvent {
  JobRef job;
  std::string_view event;  // its id: an event that was counted already does not count again
  uint32_t by = 1;
};

enum class CountOutcome : uint8_t {
  kCounted,
  kFired,       // this event was the last one needed
  kRepeated,    // this event was counted before
  kNotCounted,  // the job's trigger is time, or it has fired already
  kFinished,
  kUnknown,
  kOverloaded,  // nothing was done, try again
};

struct Counted {
  CountOutcome outcome = CountOutcome::kUnknown;
  uint32_t left = 0;
};

/// slot = crc32(key, or id if there is no key) mod slots; a server id carries its slot.
uint32_t SlotFor(std::string_view key, std::string_view id, uint32_t slots);

/// A fingerprint of what was asked for, so that a repeated submit can be told from a different one.
uint64_t Fingerprint(const NewJob& job);

}  // namespace tocsin
