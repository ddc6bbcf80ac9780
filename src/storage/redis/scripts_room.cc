// The scripts that share a topic's capacity out to its slots (rooms.h).
#include "storage/redis/script_parts.h"
#include "storage/redis/scripts.h"

namespace tocsin::redis::scripts {

// At the home: room for one slot, if the topic has it; in part, if that is asked for. Answers 1 and the slot's
// allowance with its serial; 0 where there is not enough; -1 where slots have to be registered first; -2 where the
// topic's settings have changed since.
const Script& Grant() {
  static const Script script = Make("grant", {R"lua(
local room, num = KEYS[1], tonumber
local era, slot, jobs, bytes, slots = num(ARGV[1]), ARGV[2], num(ARGV[3]), num(ARGV[4]), num(ARGV[5])
local max_jobs, max_bytes, partly = num(ARGV[6]), num(ARGV[7]), ARGV[8] == '1'
local known = num(redis.call('HGET', room, 'era') or -1)
if known > era then return {-2} end
if known < era then
  redis.call('DEL', room)
  redis.call('HSET', room, 'era', era)
  return {-1}
end
if (redis.call('HLEN', room) - 1) / 3 < slots then return {-1} end
local all, total = redis.call('HGETALL', room), {j = 0, b = 0}
for i = 1, #all, 2 do
  local kind = string.sub(all[i], 1, 1)
  if kind == 'j' or kind == 'b' then total[kind] = total[kind] + num(all[i + 1]) end
end
if partly then
  local jobs_left = max_jobs and math.min(jobs, math.max(max_jobs - total.j, 0)) or jobs
  local bytes_left = max_bytes and math.min(bytes, math.max(max_bytes - total.b, 0)) or bytes
  -- One without the other is of no use.
  if jobs_left < math.min(jobs, 1) or bytes_left < math.min(bytes, 1) then return {0} end
  jobs, bytes = jobs_left, bytes_left
end
if (max_jobs and jobs > 0 and total.j + jobs > max_jobs) or (max_bytes and bytes > 0 and total.b + bytes > max_bytes) then
  return {0}
end
return {1, redis.call('HINCRBY', room, 'j' .. slot, jobs), redis.call('HINCRBY', room, 'b' .. slot, bytes),
  redis.call('HINCRBY', room, 's' .. slot, 1)}
)lua"});
  return script;
}

// At the home: what a slot has been found to hold. With a serial it takes back what is unused, unless the slot was
// granted more since; without one it registers the slot.
const Script& Record() {
  static const Script script = Make("record", {R"lua(
local room, num = KEYS[1], tonumber
local era, slot, jobs, bytes, serial = num(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], num(ARGV[5])
if num(redis.call('HGET', room, 'era') or -1) ~= era then return 0 end
local known = redis.call('HGET', room, 's' .. slot)
if serial then
  if not known or num(known) ~= serial then return 0 end
elseif known then
  return 0
end
redis.call('HSET', room, 'j' .. slot, jobs, 'b' .. slot, bytes, 's' .. slot, serial or 0)
return 1
)lua"});
  return script;
}

// At the home: the serial under which a slot's unused room is taken back. None for a slot that is not registered, or is
// so no more after a failover: a serial alone would keep it from being registered for good.
const Script& Mark() {
  static const Script script = Make("mark", {R"lua(
if tonumber(redis.call('HGET', KEYS[1], 'era') or -1) ~= tonumber(ARGV[1]) then return -1 end
if redis.call('HEXISTS', KEYS[1], 's' .. ARGV[2]) == 0 then return -1 end
return redis.call('HINCRBY', KEYS[1], 's' .. ARGV[2], 1)
)lua"});
  return script;
}

// At the slot: what it may hold in all. Without numbers: what it holds now. An older serial changes nothing; a new era
// begins with what the slot holds. Answers the allowance.
const Script& Allow() {
  static const Script script = Make("allow", {R"lua(
local meta, job, ended = unpack(KEYS)
local num, call = tonumber, redis.call
local era, serial, jobs, bytes = num(ARGV[1]), num(ARGV[2]), num(ARGV[3]), num(ARGV[4])
local known = num(call('HGET', meta, 'era') or -1)
if known > era then return {-1, 0} end
if known < era then
  call('HSET', meta, 'era', era, 'serial', -1)
end
if serial > num(call('HGET', meta, 'serial')) then
  jobs = jobs or call('HLEN', job) - call('ZCARD', ended)
  bytes = bytes or num(call('HGET', meta, 'bytes') or 0)
  call('HSET', meta, 'serial', serial, 'jobs_max', jobs, 'bytes_max', bytes)
end
return {num(call('HGET', meta, 'jobs_max')), num(call('HGET', meta, 'bytes_max'))}
)lua"});
  return script;
}

}  // namespace tocsin::redis::scripts
