// The bytes that Redis holds of a job. The record is what was asked for; only its due time and its payload ever change.
// The note is what became of it. Both are read and cut by the scripts too (script_parts.h): big end first, at fixed
// places.
//
//   record  u56 due | u8 version | u8 trigger | u16 max attempts | u32 events to wait for | u64 fingerprint |
//           u16 key size | u16 id size | u32 size of the headers | key | id | headers | payload
//   headers each: u16 name size | u32 value size | name | value
//   due     ms since 1970, 0 for never; from 2^52 on a delay, which counts from the time in the job's sequence number:
//           so the record of a job that is given a delay is stored as it was sent, and the clock is Redis' own
//   note    u56 fence, 0 for none | u16 attempts used up | u8 flags | reason
//   flags   1 done, 2 cancelled, 4 rescheduled though it was to wait for a count alone, 8 the fence of a first lease
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

constexpr size_t kMemberBytes = 7;
/// Of a record that is to be stored: what TopicFigures::bytes does not count.
constexpr size_t kRecordHead = 31;
/// A sequence number as the member of a zset: in the order of the numbers.
std::string MemberOf(uint64_t sequence);
/// Nothing where `member` is not one.
std::optional<uint64_t> SequenceOf(std::string_view member);

/// The field of the hash of own ids: empty for a job without one.
std::string IdField(const JobRef& job);

/// A moment that the scripts take for an absolute one; what is smaller is a delay to them.
constexpr int64_t kAbsoluteMin = 1'000'000'000'000;

/// `when` is a moment or a delay, in ms.
void EncodeRecord(const NewJob& job, const Topic& topic, int64_t when, std::string& out);

/// Fills the view from a record and a note; its views point into both. kCorrupt where they are not whole.
Status DecodeJob(uint64_t sequence, std::string_view record, std::string_view note, JobView& view);

/// A topic as Redis has it. Its birth tells it from one of the same name that was dropped before: later ones are
/// larger.
struct StoredTopic : Topic {
  uint64_t birth = 0;

  /// Larger with every change, and from one life to the next.
  uint64_t era() const { return birth + version; }
};

/// u64 version | the first ten settings, u64 each | if there are more: u8 2, u8 count, u64 each | if its jobs are
/// pushed: u8 1, u16 sink size, sink, settings of the sink: u16 name size, u16 value size, both. Without the birth:
/// that is the last 8 bytes of what Redis has, put there by the scripts.
std::string EncodeTopic(const Topic& topic, std::span<const TopicSetting> settings = TopicSettings());
std::string EncodeBirth(uint64_t birth);
/// kUnsupportedFormat for what this program does not know: a later one wrote it.
Result<StoredTopic> DecodeTopic(std::string_view name, std::string_view text,
                                std::span<const TopicSetting> settings = TopicSettings());

}  // namespace tocsin::redis
