-- Rolls back leases that ran out, forgets what was retained long enough, and removes the events of jobs that no longer
-- count. Only the group's owner does: another epoch, or the same number in another node's hands after a failover that
-- forgot one, is refused with -1.
--@include common
--@include records
--@include ending
--@include counting
--@include slot
--@include leases
local slot_number, epoch, budget, base, most = num(ARGV[5]), ARGV[6], num(ARGV[7]), num(ARGV[8]), num(ARGV[9])
local owner = call('HMGET', KEYS[14], 'epoch', 'node')
if owner[1] ~= epoch or owner[2] ~= ARGV[10] then return {now, -1} end
--@include retry
allow_when_full()
local changed, died = 0, 0

local function roll_back_leases()
  local leases = call('ZRANGEBYSCORE', prepare, '-inf', '(' .. lease_until(now + 1, 0), 'WITHSCORES', 'LIMIT', 0, budget)
  for i = 1, #leases, 2 do
    if read_enough() then break end
    changed = changed + 1
    local m, score = leases[i], leases[i + 1]
    local rec = record_of(job, m)
    if not rec then
      call('ZREM', prepare, m)
    elseif not retry(m, score, read_note(call('HGET', note, m)), rec, nil, 'lease expired') then
      died = died + 1
    end
  end
  add(meta, 'exp', changed)
  add(meta, 'die', died)
end

local function forget_retained()
  for _, m in ipairs(call('ZRANGEBYSCORE', ended, '-inf', now, 'LIMIT', 0, budget)) do
    if read_enough() then break end
    changed = changed + 1
    forget(job, note, id, m, record_of(job, m))
    call('ZREM', ended, m)
  end
end

-- Whether some are left.
local function remove_events()
  while true do
    local m = call('ZRANGEBYSCORE', count, '-inf', '(0', 'LIMIT', 0, 1)[1]
    if not m then return false end
    if events_max == 0 then return true end
    local events = call('ZRANGEBYLEX', event, '[' .. m, last_event(m), 'LIMIT', 0, events_max)
    in_chunks('ZREM', event, events)
    if #events < events_max then call('ZREM', count, m) end
    events_max = events_max - #events
  end
end

roll_back_leases()
forget_retained()
local lease = head(prepare)
if not lease then call('UNLINK', claim) end
local at = remove_events() and now or math.min(lease and time_in(lease) or math.huge, head(ended) or math.huge)
if at < math.huge then call('ZADD', chore, at, slot) else call('ZREM', chore, slot) end
return {now, changed, update_head(), figures(meta, store, prepare, dead, ended, job), at < math.huge and at or -1,
  failures()}
