-- Kinds as in SweepKind. `began` bounds it: a redrive to the dead jobs that there were, the others to the jobs with a
-- sequence number up to it. Those go through the zsets with ZSCAN, which meets every member that is there all the time,
-- however its score and others' change: `part` is the zset and `scan` ZSCAN's cursor.
--@include common
--@include records
--@include ending
--@include counting
--@include slot
--@include sweeping
local kind, limit, began, part, scan = ARGV[5], num(ARGV[6]), num(ARGV[7]), num(ARGV[8]), ARGV[9]
began = began or (kind == SWEEP_REDRIVE and call('ZCARD', dead)) or num(call('HGET', meta, 'seq') or 0)
allow_when_full()
local changed, looked = 0, 0

local function full() return changed >= limit or read_enough() end

-- Whether all of the page was looked at. A member may be in it twice; one of `count` below 0 no longer waits.
local function erase_page(key, page)
  for i = 1, #page, 2 do
    local m, score = page[i], call('ZSCORE', key, page[i])
    looked = looked + 1
    if score and num(score) >= 0 and upack(MEMBER_FORMAT, m) <= began then
      if full() then return false end
      erase(m, record_of(job, m))
      changed = changed + 1
    end
  end
  return true
end

-- Whether there is more to do.
local function redrive_some()
  for _, m in ipairs(call('ZRANGE', dead, 0, math.min(limit, began) - 1)) do
    if read_enough() then break end
    redrive(m, record_of(job, m))
    changed = changed + 1
  end
  add(meta, 'red', changed)
  began = began - changed
  return began > 0 and changed > 0
end

-- Whether there is more to do.
local function purge(sets)
  while part < #sets and looked < limit and not full() do
    local page = call('ZSCAN', sets[part + 1], scan, 'COUNT', limit)
    if not erase_page(sets[part + 1], page[2]) then break end
    scan = page[1]
    if scan == '0' then part = part + 1 end
  end
  add(meta, 'bytes', -freed)
  add(meta, 'pur', purged)
  return part < #sets
end

local more
if kind == SWEEP_REDRIVE then
  more = redrive_some()
elseif kind == SWEEP_PURGE_DEAD then
  more = purge({dead})
elseif kind == SWEEP_PURGE then
  more = purge({dead, store, count})
else
  more = purge({dead, store, count, prepare, ended})
end
return {now, changed, began, part, scan, more and 1 or 0, update_head(),
  figures(meta, store, prepare, dead, ended, job)}
