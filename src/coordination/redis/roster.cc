#include "coordination/redis/roster.h"

#include <algorithm>

#include "spi/member_record.h"

namespace tocsin {
namespace {

redis::Command Scripted(const redis::Script& script, const RosterKeys& keys) {
  redis::Command command(script, 3, keys.lease);
  command.Add(keys.record).Add(keys.version).Add(keys.channel);
  return command;
}

}  // namespace

RosterKeys::RosterKeys(std::string_view prefix)
    : channel(fmt::format("{{{}:members}}", prefix)),
      lease(channel + ":lease"),
      record(channel + ":record"),
      version(channel + ":version") {}

redis::Command BeatCommand(const RosterKeys& keys, const Member& self, Millis session, BeatKind kind) {
  static const redis::Script script("members_beat", kBeatScript);
  redis::Command command = Scripted(script, keys);
  command.Add(self.id).Add(EncodeMember(self)).Add(session.count()).Add(kRosterLeaseMax.count());
  command.Add(kind == BeatKind::kJoin ? "1" : "0");
  return command;
}

redis::Command LeaveCommand(const RosterKeys& keys, std::string_view id) {
  static const redis::Script script("members_leave", kLeaveScript);
  redis::Command command = Scripted(script, keys);
  command.Add(id);
  return command;
}

Result<Roster> ReadRoster(const redis::Reply& reply, std::string_view self, Millis session) {
  const redis::ReplyView root = reply.root();
  if (root.error()) return Fail(Code::kUnavailable, "Redis refuses the list of members: {}", root.text());
  if (root.size() != 4) return Fail(Code::kInternal, "Redis answered something else than the list of members");
  const Time now = FromMs(root[1].integer());
  Roster roster{.version = root[0].integer(), .held = root[2].integer() == 1};
  const redis::ReplyView members = root[3];
  for (size_t i = 0; i < members.size(); ++i) {
    const redis::ReplyView row = members[i];
    if (row.size() != 3) return Fail(Code::kInternal, "Redis answered something else than a member");
    Member member = DecodeMember(std::string(row[0].text()), row[1].text());
    const Time end = FromMs(row[2].integer());
    member.heard = std::min(end - session, now);  // if all nodes have the same session
    if (member.id != self) roster.next_end = std::min(roster.next_end.value_or(Millis::max()), end - now);
    roster.members.push_back(std::move(member));
  }
  std::ranges::sort(roster.members, {}, &Member::id);
  return roster;
}

}  // namespace tocsin
