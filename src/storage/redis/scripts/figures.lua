-- The figures of some slots of a group. Also mends their places in the indexes of the group: a script that failed
-- halfway may have left them wrong, and a job or a lease that is not in them would wait for ever.
--@include common
local next, chore, channel, group = KEYS[2], KEYS[3], ARGV[2], ARGV[3]

local function mend_head(slot, least)
  local old = num(call('ZSCORE', next, slot) or math.huge)
  if least == old then return end
  allow_when_full()
  if least == math.huge then return call('ZREM', next, slot) end
  local tell = wakes(next, least, old)
  call('ZADD', next, least, slot)
  if tell then publish(channel, group .. ' ' .. least) end
end

-- The first chore, as chores.lua has it.
local function first_chore(count, prepare, ended)
  if call('ZRANGEBYSCORE', count, '-inf', '(0', 'LIMIT', 0, 1)[1] then return now end
  local lease = head(prepare)
  return math.min(lease and time_in(lease) or math.huge, head(ended) or math.huge)
end

local function mend_chore(slot, at)
  if at >= num(call('ZSCORE', chore, slot) or math.huge) then return end
  allow_when_full()
  call('ZADD', chore, at, slot)
end

local all, keys = {}, 7
for i = 1, #ARGV - 3 do
  local slot = ARGV[i + 3]
  local meta, store, job, prepare, dead, ended, count = unpack(KEYS, 4 + (i - 1) * keys, 3 + i * keys)
  local least = head(store)
  mend_head(slot, least or math.huge)
  mend_chore(slot, first_chore(count, prepare, ended))
  all[i] = figures(meta, store, prepare, dead, ended, job)
  all[i][16] = least and least <= now and least or -1 -- when the first ready job was due
end
return all
