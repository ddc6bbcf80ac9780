// The list of members in Redis, which only the two scripts of this folder touch. Three keys under one hash tag:
//   {<prefix>:members}:lease    zset: id -> end of its lease, in ms by Redis' own clock
//   {<prefix>:members}:record   hash: id -> what spi/member_record.h writes
//   {<prefix>:members}:version  rises with every change of who is a member
// A script that changes the list publishes the id of its caller on the channel {<prefix>:members}. No state here; any
// thread.
//
// To change the format: give the keys other names, and say that all nodes have to be restarted together. Nodes of the
// two versions do not see each other; both would take every group, again and again, until the others are gone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "clients/redis/command.h"
#include "clients/redis/reply.h"
#include "spi/coordinator.h"

namespace tocsin {

// The texts of scripts/beat.lua and scripts/leave.lua.
extern const char* const kBeatScript;
extern const char* const kLeaveScript;

struct RosterKeys {
  explicit RosterKeys(std::string_view prefix);

  std::string channel;
  std::string lease;
  std::string record;
  std::string version;
};

/// No lease is longer. One that seems to be was given before somebody set Redis' clock back, and is shortened.
constexpr Millis kRosterLeaseMax{60'000};

enum class BeatKind : uint8_t {
  kRenew,  // only a lease that has not run out
  kJoin,   // makes one if there is none
};

/// Removes members whose lease ran out, renews or makes that of `self`, and answers with a Roster.
redis::Command BeatCommand(const RosterKeys& keys, const Member& self, Millis session, BeatKind kind);
/// Removes the member at once.
redis::Command LeaveCommand(const RosterKeys& keys, std::string_view id);

struct Roster {
  int64_t version = 0;
  bool held = false;            // whether `self` has a lease now
  std::vector<Member> members;  // sorted by id
  /// In how long the first lease of another member runs out, if it is not renewed.
  std::optional<Millis> next_end;
};

/// The answer to a BeatCommand of the member `self`. What Redis refused is an Error.
Result<Roster> ReadRoster(const redis::Reply& reply, std::string_view self, Millis session);

}  // namespace tocsin
