-- At the home of a topic's allowances (allowances.h): room for one slot, if the topic has it; in part, if that is asked
-- for. Answers the outcome as in GrantOutcome and, if granted, the slot's allowance with its serial.
local call, room, num = redis.call, KEYS[1], tonumber
local era, slot, jobs, bytes, slots = num(ARGV[1]), ARGV[2], num(ARGV[3]), num(ARGV[4]), num(ARGV[5])
local max_jobs, max_bytes, partly = num(ARGV[6]), num(ARGV[7]), ARGV[8] == '1'

-- The hash has the era, and three fields for each registered slot.
local function registered() return (call('HLEN', room) - 1) / 3 end

local function granted()
  local all, total = call('HGETALL', room), {j = 0, b = 0}
  for i = 1, #all, 2 do
    local kind = string.sub(all[i], 1, 1)
    if kind == 'j' or kind == 'b' then total[kind] = total[kind] + num(all[i + 1]) end
  end
  return total.j, total.b
end

local known = num(call('HGET', room, 'era') or -1)
if known > era then return {GRANT_SETTINGS_CHANGED} end
if known < era then
  call('DEL', room)
  call('HSET', room, 'era', era)
  return {GRANT_UNREGISTERED}
end
if registered() < slots then return {GRANT_UNREGISTERED} end
local granted_jobs, granted_bytes = granted()
if partly then
  local jobs_left = max_jobs and math.min(jobs, math.max(max_jobs - granted_jobs, 0)) or jobs
  local bytes_left = max_bytes and math.min(bytes, math.max(max_bytes - granted_bytes, 0)) or bytes
  -- One without the other is of no use.
  if jobs_left < math.min(jobs, 1) or bytes_left < math.min(bytes, 1) then return {GRANT_FULL} end
  jobs, bytes = jobs_left, bytes_left
end
if (max_jobs and jobs > 0 and granted_jobs + jobs > max_jobs)
    or (max_bytes and bytes > 0 and granted_bytes + bytes > max_bytes) then
  return {GRANT_FULL}
end
return {GRANT_GRANTED, call('HINCRBY', room, 'j' .. slot, jobs), call('HINCRBY', room, 'b' .. slot, bytes),
  call('HINCRBY', room, 's' .. slot, 1)}
