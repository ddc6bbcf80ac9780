// Helpers that the calls of the Redis store share.
#pragma once

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <string_view>

#include "base/id.h"
#include "base/result.h"
#include "clients/redis/command.h"
#include "model/job.h"
#include "storage/redis/allowances.h"
#include "storage/redis/record.h"

namespace tocsin::redis {

/// The error for a server that took too long.
inline Error NoAnswer() { return {Code::kUnavailable, "Redis does not answer", {}}; }

/// The member that a reference by server id means on this slot; empty if it is none.
inline std::string MemberIn(const JobRef& job, uint32_t slot) {
  const auto uid = ParseUid(job.id);
  return uid && SlotOf(*uid) == slot ? MemberOf(*uid >> kSlotBits) : std::string();
}

/// A due time as the scripts take it.
inline int64_t WhenOf(Timeline timeline, Millis delay, Time due) {
  return timeline == Timeline::kSteady ? delay.count() : std::max(ToMs(due), kAbsoluteMin);
}

/// A limit of a topic; empty if there is none.
inline void AddLimit(Command& command, uint64_t limit) {
  if (limit == 0) {
    command.Add("");
  } else {
    command.Add(static_cast<int64_t>(std::min<uint64_t>(limit, std::numeric_limits<int64_t>::max())));
  }
}

/// If the slots have allowances: the era from which on those count.
inline void AddEra(Command& command, const StoredTopic& topic) {
  if (Allowances::Shared(topic)) {
    command.Add(static_cast<int64_t>(topic.era()));
  } else {
    command.Add("");
  }
}

/// A number that Redis gives as text; -1 for anything else.
inline int64_t ParseMs(std::string_view text) {
  int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// A due time that a script answered: -1 and 0 are never.
inline Time DueOf(int64_t ms) { return ms <= 0 ? kNever : FromMs(ms); }

}  // namespace tocsin::redis
