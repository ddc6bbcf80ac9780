// The bytes that Redis holds of a job. The record is what the client asked for; only its due time and its payload ever
// change. The note is what happened since. The scripts read and cut both too, with the places below. Numbers are big
// end first.
//
//   record  u56 due | u8 version | u8 trigger | u16 max attempts | u32 events to wait for | u64 fingerprint |
//           u16 key size | u16 id size | u32 size of the headers | key | id | headers (see record.cc) | payload
//   due     ms since 1970, 0 for never; from 2^52 on a delay, which counts from the time in the job's sequence number:
//           so the record of a job that is given a delay is stored as it was sent, and the clock is Redis' own
//   note    u56 fence, 0 for none | u16 attempts used up | u8 flags | reason | tail, if there is more to tell
//   tail    holder | u48 when the last failed attempt began | u48 when an extended lease began, or an ended job ended |
//           u16 extensions | u8 size of the holder | u8 255
// A copy that brought along when it was created has that in a header, kCreatedHeader: no job of a client has one of
// this name. Programs before it show and deliver it as a header like the others.
// The times of a tail are ms since 1970, 0 if unknown. Programs before it read a note with a tail as one with a longer
// reason, and every note that they write is whole without one: nodes of both may run together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/job.h"
#include "model/topic.h"

namespace tocsin::redis {

/// Where the fields of a record begin. What is before the key is not counted by TopicFigures::bytes.
namespace record_at {
constexpr size_t kDue = 0;
constexpr size_t kVersion = kDue + 7;
constexpr size_t kTrigger = kVersion + 1;
constexpr size_t kMaxAttempts = kTrigger + 1;
constexpr size_t kEvents = kMaxAttempts + 2;
constexpr size_t kFingerprint = kEvents + 4;
constexpr size_t kKeySize = kFingerprint + 8;
constexpr size_t kIdSize = kKeySize + 2;
constexpr size_t kHeadersSize = kIdSize + 2;
constexpr size_t kKey = kHeadersSize + 4;
}  // namespace record_at

/// Where the fields of a note begin.
namespace note_at {
constexpr size_t kFence = 0;
constexpr size_t kAttempts = kFence + 7;
constexpr size_t kFlags = kAttempts + 2;
constexpr size_t kReason = kFlags + 1;
}  // namespace note_at

/// Where the fields of a tail begin, behind the holder.
namespace tail_at {
constexpr size_t kLastAttempt = 0;
constexpr size_t kSince = kLastAttempt + 6;
constexpr size_t kExtensions = kSince + 6;
constexpr size_t kHolderSize = kExtensions + 2;
constexpr size_t kMark = kHolderSize + 1;
constexpr size_t kEnd = kMark + 1;
}  // namespace tail_at
constexpr uint8_t kTailMark = 255;
constexpr std::string_view kCreatedHeader = "tocsin-created-ms";
constexpr uint32_t kExtensionsMax = 65'535;  // more are not counted

/// Of a note. The scripts compare and cut them off by size, so the order counts.
enum class NoteFlag : uint8_t {
  kDone = 1,
  kCancelled = 2,
  kWaitsForEither = 4,  // rescheduled, though it was to wait for a count alone
  kFirstLease = 8,      // the fence is that of a first lease
};

/// A sequence number has the milliseconds since 2020, and below them a number that counts up within one.
constexpr int64_t kYear2020Ms = 1'577'836'800'000;
constexpr uint64_t kSequencesPerMs = 4096;
/// From here on the due time of a record is a delay.
constexpr uint64_t kDelayed = uint64_t{1} << 52;

constexpr size_t kMemberBytes = 7;
static_assert(record_at::kVersion == kMemberBytes && note_at::kAttempts == kMemberBytes);
/// A sequence number as the member of a zset: in the order of the numbers.
std::string MemberOf(uint64_t sequence);
/// Nothing if `member` is not one.
std::optional<uint64_t> SequenceOf(std::string_view member);

/// The field of the hash of own ids: empty for a job without one.
std::string IdField(const JobRef& job);

/// A moment that the scripts take for an absolute one; what is smaller is a delay to them.
constexpr int64_t kAbsoluteMin = 1'000'000'000'000;

/// `when` is a moment or a delay, in ms.
void EncodeRecord(const NewJob& job, const Topic& topic, int64_t when, std::string& out);

/// The note of a copy; empty if it needs none. Every dead job has one.
std::string EncodeNote(const Restored& past);

/// Fills the view from a record and a note; its views point into both. kCorrupt if they are not whole. A state other
/// than kScheduled needs ShowState too.
Status DecodeJob(uint64_t sequence, std::string_view record, std::string_view note, JobView& view);

/// What Redis has of a job's state.
struct StoredState {
  State state = State::kScheduled;
  Time at{};               // when the lease ends, the job died, or an ended job is forgotten
  std::string_view claim;  // the entry of the claim that leased it; empty if there is none
};

/// The times and the holder that the state has; after DecodeJob with the same note. The holder points into the note or
/// the claim.
void ShowState(const StoredState& stored, std::string_view note, JobView& view);

/// When a sequence number was given.
Time TimeOf(uint64_t sequence);

/// A topic as Redis has it. Its birth tells it from one of the same name that was dropped before: later ones are
/// larger.
struct StoredTopic : Topic {
  uint64_t birth = 0;

  /// Larger with every change, and from one life to the next.
  uint64_t era() const { return birth + version; }
};

/// Of each of a topic's numbers. A script compares the first one, the version, and the second one, the slots.
constexpr size_t kTopicNumberBytes = 8;
constexpr size_t kTopicSlotsAt = kTopicNumberBytes;

/// u64 version | the first ten settings, u64 each | if there are more: u8 2, u8 count, u64 each | if its jobs are
/// pushed: u8 1, u16 sink size, sink, settings of the sink: u16 name size, u16 value size, both. Without the birth:
/// that is the last 8 bytes of what Redis has, put there by the scripts.
std::string EncodeTopic(const Topic& topic, std::span<const TopicSetting> settings = TopicSettings());
std::string EncodeBirth(uint64_t birth);
/// Parts of what Redis has of a topic, which is as long as a birth at least. They are read also if a later program
/// wrote it.
uint64_t BirthIn(std::string_view stored);
uint64_t VersionIn(std::string_view stored);
uint32_t SlotsIn(std::string_view stored);
std::string_view SettingsIn(std::string_view stored);
/// kUnsupportedFormat for what this program does not know: a later one wrote it.
Result<StoredTopic> DecodeTopic(std::string_view name, std::string_view text,
                                std::span<const TopicSetting> settings = TopicSettings());

}  // namespace tocsin::redis
