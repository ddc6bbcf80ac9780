-- At the slot: what it may hold in all. Without numbers: what it holds now. An older serial changes nothing; a new era
-- begins with what the slot holds. Answers the allowance.
local meta, job, ended = unpack(KEYS)
local num, call = tonumber, redis.call
local era, serial, jobs, bytes = num(ARGV[1]), num(ARGV[2]), num(ARGV[3]), num(ARGV[4])
local known = num(call('HGET', meta, 'era') or -1)
if known > era then return {-1, 0} end
if known < era then call('HSET', meta, 'era', era, 'serial', -1) end
if serial > num(call('HGET', meta, 'serial')) then
  jobs = jobs or call('HLEN', job) - call('ZCARD', ended)
  bytes = bytes or num(call('HGET', meta, 'bytes') or 0)
  call('HSET', meta, 'serial', serial, 'jobs_max', jobs, 'bytes_max', bytes)
end
return {num(call('HGET', meta, 'jobs_max')), num(call('HGET', meta, 'bytes_max'))}
