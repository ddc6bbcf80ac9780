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

/// What to do with a due time that is long past: it is more often a mistake than meant.
enum class PastDue : uint8_t { kRefuse = 0, kFire = 1 };

constexpr Millis kDelayMax = std::chrono::days(3653);  // ten years
constexpr Millis kPastMax = std::chrono::days(1);      // of a due time with PastDue::kRefuse
constexpr size_t kReasonBytesMax = 1024;
constexpr size_t kHolderBytesMax = 128;                       // of a lease; a store cuts off what is longer
constexpr std::string_view kRevokedReason = "lease revoked";  // of a job after AmendKind::kRevoke
constexpr size_t kBatchMax = 100'000;                         // jobs or tokens in one call, whatever limits.batch says
constexpr size_t kHeadersMax = 32;
constexpr Millis kWaitMax{60'000};  // of a long poll
constexpr Millis kLeaseMax = std::chrono::hours(12);
constexpr size_t kPageMax = 1000;  // jobs on a page of a list

struct HeaderView {
  std::string_view name;
  std::string_view value;
};

/// The past of a job that is a copy of one stored elsewhere, or here before. Nothing of it was seen here, so only
/// administrators may say it. A job that waits for events has used up no attempt and is not dead.
struct Restored {
  bool dead = false;
  uint32_t attempts = 0;    // used up
  std::string_view reason;  // of the last failed attempt
  Time created{};           // this and the following in UTC; Time{}: not known. A job without it is created now.
  Time last_attempt{};
  Time died{};  // of a dead job; without it, it dies now
};

/// What is asked for when a job is submitted.
struct NewJob {
  std::string_view id;   // empty: the server gives one
  std::string_view key;  // places the job on a slot; empty: the id does
  Timeline timeline = Timeline::kSteady;
  Millis delay{0};  // on kSteady: from now
  Time due{};       // on kUtc: the moment itself; one that has passed counts as now, unless the job is restored
  Trigger trigger = Trigger::kTime;
  uint32_t count = 0;         // events to wait for; 0: the topic's count_limit
  uint32_t max_attempts = 0;  // 0: the topic's
  OnConflict on_conflict = OnConflict::kReject;
  std::vector<HeaderView> headers;
  std::string_view payload;
  uint32_t slot = 0;                // set by the service: SlotFor(key, id, slots), or any slot if both are empty
  PastDue past = PastDue::kRefuse;  // of `due`; checked when the job comes in, not stored
  std::shared_ptr<Restored> restored = {};  // null: a new job, as nearly all are
};

enum class SubmitOutcome : uint8_t {
  kAccepted,      // stored (with kReplace: instead of the job that had the id)
  kDuplicate,     // the same id with the same content is stored already; or kKeep was asked
  kConflict,      // the id is stored with other content
  kInFlight,      // kReplace was asked, but the job that has the id is leased
  kOverCapacity,  // the topic or the node is full
  kStorageFull,   // the disk is full
  kOverloaded,    // the shard's mailbox is full: nothing was done, try again
  kUnavailable,   // the store failed for this job alone: whether it is stored is unknown
};

struct Submitted {
  SubmitOutcome outcome = SubmitOutcome::kAccepted;
  Uid uid = 0;  // of the stored job; 0 with kOverCapacity and all after it
  Time due{};   // in UTC
};

/// Names a job: by server id, or by own id and the key it was submitted with.
struct JobRef {
  std::string_view id;
  std::string_view key;
  Uid uid = 0;  // if it is given: this job. A text may also be the own id of another one.
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
  // The number that the consumer saw: of this delivery if leased, of the last one if done. Otherwise attempts used up.
  uint32_t attempt = 0;
  uint32_t max_attempts = 0;
  std::string_view reason;  // why it is dead, or why its last attempt failed
  std::vector<HeaderView> headers;
  std::string_view payload;
  Token token;            // when delivered
  Time lease_deadline{};  // when leased; this and the following in UTC
  Time created{};
  // When the last attempt began; Time{} if there was none, or memory was short. A delivery that was released is none.
  Time last_attempt{};
  Time died{};      // of a dead letter
  Time finished{};  // of a job that is done or cancelled
  // Of a leased job. The answer to a claim need not have them.
  Time leased{};            // when the lease began
  uint32_t extensions = 0;  // how often it was extended
  std::string_view holder;  // the consumer's name, or its address

  std::string Id() const { return own_id.empty() ? UidText(uid) : std::string(own_id); }
};

/// Jobs with the bytes that they point into: one allocation for a batch, however many jobs are in it.
struct JobBatch {
  std::vector<JobView> jobs;
  std::vector<std::unique_ptr<char[]>> bytes;
  bool more = false;     // it ended early because its jobs are large, and there are more
  bool no_room = false;  // it is empty because there was no room for the first job, or for all that were looked up
};

/// The bytes that count against a topic's capacity: own id, key, headers and payload.
size_t CountedBytes(const NewJob& job);
size_t CountedBytes(const JobView& job);

/// The texts that a new job brings, as a view of the same bytes.
JobView ViewOf(const NewJob& job);

/// Adds a copy of `job` whose texts the batch owns.
void Append(JobBatch& batch, JobView job);

enum class SettleKind : uint8_t {
  kAck,      // done
  kNack,     // try again after `delay` (or the topic's back-off), or dead when no attempt is left
  kExtend,   // the lease runs `lease` from now
  kRelease,  // undo the delivery: due again, at once or after `delay`, and no attempt is used up
  kBury,     // a nack after which no attempt is left, whatever was: dead at once
};

struct Settlement {
  Token token;
  SettleKind kind = SettleKind::kAck;
  std::optional<Millis> delay;  // kNack; kRelease, where a restart may forget it
  Millis lease{0};              // kExtend; 0: the topic's
  std::string_view reason;      // kNack, kBury
};

enum class SettleOutcome : uint8_t {
  kOk,
  kDead,         // a nack that used up the last attempt, or a bury
  kStale,        // not the current token: nothing changed
  kOverloaded,   // nothing was done, try again
  kUnavailable,  // the store failed for this one: whether it was done is unknown
};

enum class AmendKind : uint8_t {
  kCancel,
  kReschedule,
  kPayload,  // also of a dead letter
  kFire,
  kRedrive,   // a dead letter is due now, with all its attempts; kFinished for a job that is not dead
  kRemove,    // a scheduled or dead job is gone and counts as purged; a retained one is forgotten
  kAttempts,  // a scheduled or dead job gets another max_attempts
  kRevoke,    // a leased job is due again at once, as if its lease had expired; kFinished for a job that is not leased
};

/// What somebody has seen of a job, and relies on.
struct Seen {
  // Nothing: it does not matter.
  std::optional<State> state = {};
  std::optional<Time> due = {};          // in UTC, as it was shown
  std::optional<uint32_t> attempt = {};  // as it was shown
};

struct Amendment {
  JobRef job;
  AmendKind kind = AmendKind::kCancel;
  Timeline timeline = Timeline::kSteady;  // kReschedule: as in NewJob
  Millis delay{0};
  Time due{};
  uint32_t max_attempts = 0;                // kAttempts
  std::optional<std::string_view> payload;  // kPayload; with kReschedule: both change in one step, or neither
  PastDue past = PastDue::kRefuse;          // as in NewJob
  std::optional<Seen> seen = {};            // only if the job is still as it was seen
};

enum class AmendOutcome : uint8_t {
  kDone,
  kInFlight,      // leased: a consumer has it; nothing changed
  kFinished,      // done, cancelled (a repeated cancel answers kDone) or dead; nothing changed
  kUnknown,       // no such job is stored
  kChanged,       // not as it was seen any more; nothing changed
  kOverCapacity,  // the larger payload does not fit
  kStorageFull,
  kOverloaded,   // nothing was done, try again
  kUnavailable,  // the store failed for this one: whether it was done is unknown
};

struct Amended {
  AmendOutcome outcome = AmendOutcome::kUnknown;
  Time due{};  // in UTC, after kReschedule, kFire and kRedrive
};

/// The outcome if a job in this state is not changed; nothing if it is. A repeated cancel answers kDone.
std::optional<AmendOutcome> UnchangedOutcome(AmendKind kind, State state);

/// Whether a job is as it was seen; `due` as it is shown now. Clocks are read in whole milliseconds, so the due time of
/// a job on the steady timeline may be shown a millisecond off.
bool IsAs(const Seen& seen, State state, uint32_t attempt, Time due, Timeline timeline);

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
  kOverloaded,   // nothing was done, try again
  kUnavailable,  // the store failed for this one: whether it was counted is unknown
};

struct Counted {
  CountOutcome outcome = CountOutcome::kUnknown;
  uint32_t left = 0;
};

/// slot = crc32(key, or id if there is no key) mod slots; a server id carries its slot.
uint32_t SlotFor(std::string_view key, std::string_view id, uint32_t slots);
uint32_t SlotFor(const JobRef& job, uint32_t slots);

/// A fingerprint of what was asked for, so that a repeated submit can be told from a different one.
uint64_t Fingerprint(const NewJob& job);

}  // namespace tocsin
