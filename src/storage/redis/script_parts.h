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
-- At maxmemory Redis refuses a script whose first write may need memory. After this one it refuses nothing: for the
-- scripts that, in the end, make room.
local function although_full() call('HDEL', KEYS[1], '') end
local function next_sequence(last) return math.max(num(last or 0) + 1, (now - y2020) * 4096) end
-- Of a sequence number or a lease.
local function time_in(n) return math.floor(n / 4096) + y2020 end
local function sequence(meta, n)
  local first = next_sequence(call('HGET', meta, 'seq'))
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
-- The longest record that the slot has held since it was empty says how many of them may be read at once.
local function lengthen(meta, known, size, was_empty)
  known = num(known or 0)
  if size > known or (was_empty and known > 4096) then call('HSET', meta, 'longest', size) end
end
local function first_after(key, time)
  local f = call('ZRANGEBYSCORE', key, '(' .. time, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return f[2] and num(f[2])
end
-- Whether a slot's head that is earlier than before has to be told: nodes know what was due already, and sleep until
-- the first job of the group that was not.
local function wakes(next, least, old)
  if least >= old or old <= now then return false end
  return least <= now or least < (first_after(next, now) or math.huge)
end
local function figures(meta, store, prepare, dead, ended, job)
  return {call('HLEN', job), call('ZCARD', prepare), call('ZCARD', dead), call('ZCARD', ended),
    call('ZCOUNT', store, '-inf', now),
    unpack(call('HMGET', meta, 'bytes', 'acc', 'dlv', 'ack', 'nak', 'exp', 'die', 'red', 'can', 'pur'))}
end
)lua";

// Records, notes and leases (record.h, scripts.h).
inline constexpr const char* kNotes = R"lua(
-- Records may be large: a script that has read this much leaves the rest of its batch to the next one.
local bytes_max, bytes_read = 4194304, 0
local function record_of(job, m)
  local rec = call('HGET', job, m)
  if rec then bytes_read = bytes_read + #rec end
  return rec
end
local function enough() return bytes_read >= bytes_max end
local function size_of(rec) return #rec - 31 end
-- A due time that was asked for as a delay counts from the time in the job's sequence number (record.h).
local delayed = 2 ^ 52
local function due_in(m, rec)
  local due = upack('>I7', rec)
  return due < delayed and due or due - delayed + time_in(upack('>I7', m))
end
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
local function noted(note, dead, ended)
  return call('HLEN', note) > call('ZCARD', dead) + call('ZCARD', ended)
end
local function is_of(s, kind, fence)
  return sub(s, 1, 7) == pack('>I7', fence) and (upack('>I1', s, 10) >= 8) == (kind == 'f')
end
-- A job counts no more. Its events go at once as long as they are few; otherwise chores remove them, in pieces.
local events_max = 5000
local function last_event(m) return '[' .. m .. string.rep('\255', 260) end
local function uncount(count, event, m, chore, slot)
  if call('ZREM', count, m) == 0 then return end
  local events = call('ZLEXCOUNT', event, '[' .. m, last_event(m))
  if events <= events_max then
    call('ZREMRANGEBYLEX', event, '[' .. m, last_event(m))
    events_max = events_max - events
  else
    call('ZADD', count, -1, m)
    call('ZADD', chore, 'LT', now, slot)
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

// The head of the slot has moved: the group's index follows.
inline constexpr const char* kMoved = R"lua(
local old_head = num(call('ZSCORE', next, slot) or math.huge)
local function moved()
  local least = head(store)
  if not least then
    call('ZREM', next, slot)
    return -1
  end
  local tell = wakes(next, least, old_head)
  if least ~= old_head then call('ZADD', next, least, slot) end
  if tell then call('PUBLISH', channel, group .. ' ' .. least) end
  return least
end
)lua";

// A slot takes jobs only in the life of the topic that has opened it (OpenSlot): a node that has not heard of a drop
// would add to what nobody looks at any more. ARGV[5] is the topic's birth.
inline constexpr const char* kLife = R"lua(
local known = call('HMGET', KEYS[1], 'birth', 'seq', 'longest')
if known[1] ~= ARGV[5] then return redis.error_reply('GONE ' .. ARGV[2]) end
)lua";

inline Script Make(const char* name, std::initializer_list<const char*> parts) {
  std::string source = fmt::format("-- tocsin {}\n", name);
  for (const char* part : parts) source += part;
  return Script(name, std::move(source));
}

}  // namespace tocsin::redis::scripts
