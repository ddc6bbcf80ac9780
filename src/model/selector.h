// Selector: names a set of jobs of a topic by what they are: their ids, texts, state, times and attempts. A job belongs
// to the set if it meets everything that the selector asks for; an empty selector means all jobs. Lists, counts and
// operations take the same selector on every wire.
//
// A value. Stores look at each job with Matches, or do the same in parts, and copy only those that match.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/job.h"

namespace tocsin {

/// The order of a list.
enum class Sort : uint8_t { kNone, kDue, kCreated };

/// What the jobs of a tally are counted by.
enum class TallyBy : uint8_t { kNothing, kState, kReason, kKey, kHeader, kMinute };

/// What an operation does to each job.
enum class JobAction : uint8_t { kCancel, kReschedule, kRedrive, kPurge, kFire, kAttempts };

/// From `from` on, and before `to`.
struct TimeRange {
  std::optional<Time> from;
  std::optional<Time> to;
  bool or_none = false;  // or a job without such a time

  bool Bounds() const { return from || to; }
  bool Has(Time time) const { return (!from || time >= *from) && (!to || time < *to); }
};

/// Bits for the states, in the order of State, and one for `ready`: scheduled and due.
class StateSet {
 public:
  StateSet() = default;
  static StateSet Of(State state) { return StateSet(1U << static_cast<uint32_t>(state)); }
  static StateSet Ready() { return StateSet(kReadyBit); }

  void Add(StateSet other) { bits_ |= other.bits_; }
  /// All states, if none was added.
  bool All() const { return bits_ == 0; }
  /// Whether jobs of this state may be in the set.
  bool MayHave(State state) const {
    return All() || (bits_ & BitsOf(state)) != 0 || (state == State::kScheduled && (bits_ & kReadyBit) != 0);
  }
  bool Has(State state, Time due, Time now) const {
    if (All() || (bits_ & BitsOf(state)) != 0) return true;
    return (bits_ & kReadyBit) != 0 && state == State::kScheduled && due <= now;
  }

  friend bool operator==(StateSet, StateSet) = default;

 private:
  static constexpr uint32_t kReadyBit = 1U << 31;
  explicit StateSet(uint32_t bits) : bits_(bits) {}
  static uint32_t BitsOf(State state) { return 1U << static_cast<uint32_t>(state); }

  uint32_t bits_ = 0;
};

constexpr size_t kSelectedIdsMax = 1000;

struct Selector {
  StateSet states;
  std::vector<std::string> ids;  // own ids or server ids: one of them
  std::string id_prefix;         // of the id as it is shown
  std::string key;
  std::string header;                       // a header with this name
  std::optional<std::string> header_value;  // and this value
  std::string payload;                      // is within the payload
  std::string reason;                       // is within the reason
  std::string reason_is;                    // is the whole reason
  std::string holder;                       // of the lease
  TimeRange due;                            // all in UTC
  TimeRange created;
  TimeRange died;
  std::optional<uint32_t> attempts_min;
  std::optional<uint32_t> attempts_max;

  /// Whether it asks for nothing: all jobs.
  bool Empty() const;
};

/// All jobs of a state.
Selector OfState(State state);

/// `now` in UTC.
bool Matches(const Selector& what, const JobView& job, Time now);
/// Whether the job meets all except `ids` and `payload`: a store that looks at many jobs has faster ways for these. It
/// looks only at those members of the view that the selector asks for.
bool MatchesRest(const Selector& what, const JobView& job, Time now);

}  // namespace tocsin
