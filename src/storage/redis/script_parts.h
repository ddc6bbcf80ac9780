// What the Lua scripts of the Redis store have in common; for scripts*.cc alone.
#pragma once

#include <initializer_list>
#include <string>

#include <fmt/format.h>

#include "clients/redis/command.h"

namespace tocsin::redis::scripts {

// What several scripts share. ARGV[1] is the time where the caller's clock counts, otherwise empty: then Redis' own
// does. Numbers stay below 2^53, so that Lua's doubles hold them exactly.
inline constexpr const char* kCommon = R"lua(
local call, num, pack, upack, sub = redis.call, tonumber, struct.pack, struct.unpack, string.sub
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
local function sequence(meta, n)
  local last = num(call('HGET', meta, 'seq') or 0)
  local first = math.max(last + 1, (now - 1577836800000) * 4096)
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

// Notes and the ends of jobs.
inline constexpr const char* kNotes = R"lua(
local function id_of(rec)
  local kl, il = upack('>I2I2', rec, 17)
  if il == 0 then return '' end
  return sub(rec, 17, 18) .. sub(rec, 25, 24 + kl + il)
end
local function new_note(rec)
  return {fence = 0, tries = 0, due = 0, flags = 0, size = #rec - 24, id = id_of(rec), reason = ''}
end
local function read_note(s)
  local f, t, d, g, z, n = upack('>I7I2I7I1I4I2', s)
  return {fence = f, tries = t, due = d, flags = g, size = z, id = sub(s, 24, 23 + n), reason = sub(s, 24 + n)}
end
local function note_text(n)
  return pack('>I7I2I7I1I4I2', n.fence, n.tries, n.due, n.flags, n.size, #n.id) .. n.id .. n.reason
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

inline Script Make(const char* name, std::initializer_list<const char*> parts) {
  std::string source = fmt::format("-- tocsin {}\n", name);
  for (const char* part : parts) source += part;
  return Script(name, std::move(source));
}

}  // namespace tocsin::redis::scripts
