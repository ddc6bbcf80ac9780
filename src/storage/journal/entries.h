// Entries: the content of records of type kEntries. Each entry is one change of a job or a topic. Times are relative to
// the record's moment, so that they are short. Topic numbers are those of the record's lane, defined by its kTopic
// entries.
//
// Replaying the entries of all segments in order gives the state. A put holds a whole job and replaces what was known
// of it. The other entries change a job that an earlier put made; without one they are ignored, because that put was in
// a segment that is no longer needed.
#pragma once

#include <span>

#include "base/codec.h"
#include "model/job.h"
#include "model/topic.h"
#include "storage/journal/event_set.h"

namespace tocsin::journal {

enum class EntryType : uint8_t {
  kPut = 1,
  kMove = 2,   // a new due time, state, number of attempts
  kCount = 3,  // an event was counted
  kDone = 4,   // these three end a job
  kCancelled = 5,
  kPurged = 6,
  kTopic = 7,       // a topic's number, name, first ten settings and version
  kDropTopic = 8,   // the topic and all its jobs are gone
  kUids = 9,        // ids up to this one were given out
  kPushTopic = 10,  // as kTopic, and its delivery
  kSettings = 11,   // as kPushTopic, with the settings that came after the first ten; written if there are any
  // As kPut, kMove and kDone, with times that the job remembers. Written if there are any.
  kPutTimes = 12,  // when its last attempt began, and when it died or ended
  kFailed = 13,    // when the attempt that failed began
  kAcked = 14,     // when the attempt that succeeded began
};

/// Data that few jobs have. Kept aside in memory, and written only if there is any.
struct Details {
  std::string reason;  // of the last failed attempt
  EventSet events;     // Hash64 of those that were counted
  uint32_t count_left = 0;
  bool finished = false;  // retained after its end: the next two hold its due time
  Time finished_due = kNever;
  Timeline finished_timeline = Timeline::kSteady;
  Time last_attempt{};     // when it began; this and the next are on the steady timeline, Time{} if unknown
  Time ended{};            // since when it is dead, done or cancelled
  uint32_t put_bytes = 0;  // of these details in the job's latest put; not stored
  size_t bytes = 0;        // MemoryBytes at the last change; not stored

  size_t MemoryBytes() const {
    constexpr size_t kEntry = 2 * sizeof(void*);  // what a hash table adds to an entry
    return sizeof(Details) + kEntry + reason.capacity() + events.held_bytes();
  }

  bool HasTimes() const { return last_attempt != Time{} || ended != Time{}; }

  void Finish(Time due, Timeline timeline, Time now) {
    finished = true;
    ended = now;
    finished_due = due;
    finished_timeline = timeline;
  }
};

struct PutEntry {
  uint32_t topic = 0;
  Uid uid = 0;
  State state = State::kScheduled;
  Timeline timeline = Timeline::kSteady;
  Time due{};  // of a retained job: when it is forgotten, on the steady timeline
  uint32_t attempts = 0;
  uint32_t max_attempts = 0;
  Trigger trigger = Trigger::kTime;
  bool fired = false;
  const Details* details = nullptr;
  std::string_view body;
};

struct MoveEntry {
  uint32_t topic = 0;
  Uid uid = 0;
  State state = State::kScheduled;  // or kDead
  Timeline timeline = Timeline::kSteady;
  Time due{};
  uint32_t attempts = 0;
  bool fired = false;   // its trigger has fired: it counts no more
  bool either = false;  // a reschedule gave a count trigger a due time as well
  std::string_view reason;
  Time last_attempt{};  // as in Details; Time{} if the move did not end an attempt
};

struct CountEntry {
  uint32_t topic = 0;
  Uid uid = 0;
  uint64_t event = 0;
  uint32_t left = 0;
};

struct EndEntry {
  uint32_t topic = 0;
  Uid uid = 0;
  EntryType how = EntryType::kDone;
  Millis retention{0};  // how long it can still be looked up
  Time last_attempt{};  // with kDone: as in Details
};

void EncodePut(std::string& out, const PutEntry& entry, Moment moment);
void EncodeMove(std::string& out, const MoveEntry& entry, Moment moment);
void EncodeCount(std::string& out, const CountEntry& entry);
void EncodeEnd(std::string& out, const EndEntry& entry, Moment moment);
void EncodeTopic(std::string& out, uint32_t number, const Topic& topic,
                 std::span<const TopicSetting> settings = TopicSettings());
void EncodeDropTopic(std::string& out, uint32_t number);
void EncodeUids(std::string& out, Uid used);

/// Ignores every entry that it does not override.
class EntryVisitor {
 public:
  virtual ~EntryVisitor() = default;
  virtual void OnPut(const PutEntry& /*entry*/) {}
  virtual void OnMove(const MoveEntry& /*entry*/) {}
  virtual void OnCount(const CountEntry& /*entry*/) {}
  virtual void OnEnd(const EndEntry& /*entry*/) {}
  virtual void OnTopic(uint32_t /*number*/, const Topic& /*topic*/) {}
  virtual void OnDropTopic(uint32_t /*number*/) {}
  virtual void OnUids(Uid /*used*/) {}
};

/// Calls `visitor` for each entry, in order. Stops with false at a malformed one.
bool DecodeEntries(std::string_view entries, Moment moment, EntryVisitor& visitor,
                   std::span<const TopicSetting> settings = TopicSettings());

}  // namespace tocsin::journal
