-- Outcomes as in CountOutcome, for as many as were looked at, each with the events that are left.
--@include common
--@include records
--@include counting
--@include slot
--@include lookup
local results = {}

local function fire(m)
  stop_counting(count, event, m, chore, slot)
  call('HSET', job, m, with_due(record_of(job, m), now))
  call('ZADD', store, now, m)
end

local function count_event(given, own, name, by)
  local m = found(given, own)
  if not m then return COUNT_UNKNOWN, 0 end
  local state = state_of(m, call('HGET', note, m))
  if state ~= STATE_SCHEDULED and state ~= STATE_LEASED then return COUNT_FINISHED, 0 end
  local left, due = num(call('ZSCORE', count, m) or 0), call('ZSCORE', store, m)
  if state == STATE_LEASED or left <= 0 or (due and num(due) <= now) then return COUNT_NOT_COUNTED, 0 end
  if call('ZADD', event, 'NX', 0, m .. name) == 0 then return COUNT_REPEATED, left end
  left = math.max(left - num(by), 0)
  if left > 0 then
    call('ZADD', count, left, m)
    return COUNT_COUNTED, left
  end
  fire(m)
  return COUNT_FIRED, 0
end

for i = 5, #ARGV, COUNT_ITEM do
  if read_enough() then break end
  local outcome, left = count_event(unpack(ARGV, i, i + COUNT_ITEM - 1))
  results[#results + 1] = outcome
  results[#results + 1] = left
end
return {now, results, update_head(), figures(meta, store, prepare, dead, ended, job)}
