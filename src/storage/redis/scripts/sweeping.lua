-- What a sweep, or a change that names a job, does to one. After slot, records, ending and counting.
local purged, freed = 0, 0

-- A retained job was counted when it ended.
local function erase(m, rec)
  local retained = call('ZREM', ended, m) == 1
  if rec and not retained then freed, purged = freed + size_of(rec), purged + 1 end
  call('ZREM', store, m)
  call('ZREM', prepare, m)
  call('ZREM', dead, m)
  stop_counting(count, event, m, chore, slot)
  forget(job, note, id, m, rec)
end

local function redrive(m, rec)
  call('ZREM', dead, m)
  if not rec then return end
  local n = read_note(call('HGET', note, m))
  n.tries = 0
  call('HSET', note, m, note_text(n))
  call('HSET', job, m, with_due(rec, now))
  call('ZADD', store, now, m)
end
