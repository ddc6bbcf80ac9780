#include "coordination/redis/roster.h"

#include <algorithm>

#include "spi/member_record.h"

namespace tocsin {
namespace {

// KEYS: lease, record, version. ARGV: channel, id, record, session in ms, the longest lease in ms, "join" or "renew".
constexpr const char* kBeat = R"lua(
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function ms(value) return string.format('%.0f', value) end

-- At maxmemory Redis refuses a script whose first write may need memory. After this one it refuses nothing.
redis.call('ZREM', KEYS[1], '')
local last = ms(now + tonumber(ARGV[5]))
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. last, '+inf')) do
  redis.call('ZADD', KEYS[1], last, id)
end
local changed = false
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ms(now))) do
  redis.call('ZREM', KEYS[1], id)
  redis.call('HDEL', KEYS[2], id)
  changed = true
end

local held = redis.call('ZSCORE', KEYS[1], ARGV[2])
if ARGV[6] == 'join' then
  redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
  changed = changed or not held
  held = true
end
if held then
  redis.call('ZADD', KEYS[1], ms(now + tonumber(ARGV[4])), ARGV[2])
end

if changed then
  redis.call('INCR', KEYS[3])
  redis.call('PUBLISH', ARGV[1], ARGV[2])
end
local members = {}
local leases = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for i = 1, #leases, 2 do
  members[#members + 1] = {leases[i], redis.call('HGET', KEYS[2], leases[i]) or '', tonumber(leases[i + 1])}
end
return {tonumber(redis.call('GET', KEYS[3]) or '0'), now, held and 1 or 0, members}
)lua";

// KEYS: as above. ARGV: channel, id.
constexpr const char* kLeave = R"lua(
redis.call('HDEL', KEYS[2], ARGV[2])
if redis.call('ZREM', KEYS[1], ARGV[2]) == 1 then
  redis.call('INCR', KEYS[3])
  redis.call('PUBLISH', ARGV[1], ARGV[2])
end
return 'OK'
)lua";

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
  static const redis::Script script("members_beat", kBeat);
  redis::Command command = Scripted(script, keys);
  command.Add(self.id).Add(EncodeMember(self)).Add(session.count()).Add(kRosterLeaseMax.count());
  command.Add(kind == BeatKind::kJoin ? "join" : "renew");
  return command;
}

redis::Command LeaveCommand(const RosterKeys& keys, std::string_view id) {
  static const redis::Script script("members_leave", kLeave);
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
    member.heard = std::min(end - session, now);  // where all nodes have the same session
    if (member.id != self) roster.next_end = std::min(roster.next_end.value_or(Millis::max()), end - now);
    roster.members.push_back(std::move(member));
  }
  std::ranges::sort(roster.members, {}, &Member::id);
  return roster;
}

}  // namespace tocsin
