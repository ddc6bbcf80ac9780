// What the Lua scripts of the Redis store have in common; for scripts*.cc alone.
#pragma once

#include <initializer_list>
#include <string>

#include <fmt/format.h>

#include "clients/redis/command.h"

namespace tocsin::redis::scripts {

// What several scripts share. ARGV[1] is the time where the caller's clock counts, otherwise empty: then Redis' own
// does. Numbers stay below 2^53, so that Lua's doubles hold them exactly. Redis prints a number that it is handed with
// %.17g, which takes longer than the command: what goes to many jobs goes as text.
inline constexpr const char* kCommon = R"lua(
local call, num, pack, upack, sub = redis.call, tonumber, struct.pack, struct.unpack, string.sub
local y2020 = 1577836800000
local now = num(ARGV[1])
if not now then
  local t = call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local function when(text)
  local w = num(text)
  if w < 1e12 then return now + w end
  return w > now and w or now
end
local function digits(n) return string.format('%.0f', n) end
local function sequence(meta, n)
  local last = num(call('HGET', meta, 'seq') or 0)
  local first = math.max(last + 1, (now - y2020) * 4096)
  call('HSET', meta, 'seq', first + n - 1)
  return first
end
local function chunks(command, key, list, size)
  for i = 1, #list, size do call(command, key, unpack(list, i, math.min(i + size - 1, #list))) end
end
local function add(meta, name, by)
  if by ~= 0 then call('HINCRBY', meta, name, by) end
end
local function head(key)
  local h = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return h[2] and num(h[2])
end
local function touch(store, next, slot)
  local h = head(store)
  if h then call('ZADD', next, h, slot) else call('ZREM', next, slot) end
  return h or -1
end
local function figures(meta, store, prepare, dead, ended, job)
  return {call('HLEN', job), call('ZCARD', prepare), call('ZCARD', dead), call('ZCARD', ended),
    call('ZCOUNT', store, '-inf', now),
    unpack(call('HMGET', meta, 'bytes', 'acc', 'dlv', 'ack', 'nak', 'exp', 'die', 'red', 'can', 'pur'))}
end
)lua";

// Records, notes and leases (record.h, scripts.h).
inline constexpr const char* kNotes = R"lua(
local function size_of(rec) return #rec - 31 end
local function due_in(rec) return (upack('>I7', rec)) end
local function with_due(rec, due) return pack('>I7', due) .. sub(rec, 8) end
local function id_of(rec)
  local kl, il = upack('>I2I2', rec, 24)
  if il == 0 then return '' end
  return sub(rec, 24, 25) .. sub(rec, 32, 31 + kl + il)
end
local function read_note(s)
  if not s then return {fence = 0, tries = 0, flags = 0, reason = ''} end
  local f, t, g = upack('>I7I2I1', s)
  return {fence = f, tries = t, flags = g, reason = sub(s, 11)}
end
local function note_text(n)
  return pack('>I7I2I1', n.fence, n.tries, n.flags) .. n.reason
end
local function lease_until(ends, low) return digits((ends - y2020) * 4096 + low) end
local function lease_end(score) return math.floor(score / 4096) + y2020 end
local function noted(note, dead, ended)
  return call('HLEN', note) > call('ZCARD', dead) + call('ZCARD', ended)
end
local function is_of(s, kind, fence)
  return sub(s, 1, 7) == pack('>I7', fence) and (upack('>I1', s, 10) >= 8) == (kind == 'f')
end
local function uncount(count, event, m)
  if call('ZREM', count, m) == 1 then
    call('ZREMRANGEBYLEX', event, '[' .. m, '[' .. m .. string.rep('\255', 260))
  end
end
)lua";

// What the slot may hold: the topic's own capacity or, given an era, the slot's allowance, which counts only from that
// era on.
inline constexpr const char* kLimits = R"lua(
local function limits(meta, max_jobs, max_bytes, era, live, bytes)
  max_jobs, max_bytes, era = num(max_jobs), num(max_bytes), num(era)
  if era then
    local m = call('HMGET', meta, 'era', 'jobs_max', 'bytes_max')
    local counts = m[1] and num(m[1]) >= era
    max_jobs = max_jobs and (counts and num(m[2]) or live)
    max_bytes = max_bytes and (counts and num(m[3]) or bytes)
  end
  return max_jobs, max_bytes
end
)lua";

// The head of the slot has moved: the group's index follows, and who sleeps longer is woken.
inline constexpr const char* kMoved = R"lua(
local old_head, earliest = num(call('ZSCORE', next, slot) or math.huge), head(next) or math.huge
local function moved()
  local least = touch(store, next, slot)
  if least >= 0 and least < old_head and (least < earliest or (least <= now and old_head > now)) then
    call('PUBLISH', channel, group .. ' ' .. least)
  end
  return least
end
)lua";

inline Script Make(const char* name, std::initializer_list<const char*> parts) {
  std::string source = fmt::format("-- tocsin {}\n", name);
  for (const char* part : parts) source += part;
  return Script(name, std::move(source));
}

}  // namespace tocsin::redis::scripts
