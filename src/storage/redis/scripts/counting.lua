-- The end of counting: a job's events are removed at once if they are few; otherwise chores remove them, in pieces.
-- After common.
local events_max = 5000
local function last_event(m) return '[' .. m .. string.rep('\255', EVENT_NAME_MAX + 1) end
local function stop_counting(count, event, m, chore, slot)
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
