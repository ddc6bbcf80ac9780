-- How a job ends. After records.

-- Removes a job from the hashes; the caller removes it from the zset of its state.
local function forget(job, note, id, m, rec)
  local own = rec and id_of(rec) or ''
  call('HDEL', job, m)
  call('HDEL', note, m)
  if own ~= '' then call('HDEL', id, own) end
end

-- The note of an ended job.
local function end_note(n, flag)
  n.fence, n.flags, n.since, n.extensions, n.holder = 0, flag, now, 0, ''
end

-- An ended job is kept for as long as the topic retains it.
local function retain(note, ended, chore, slot, m, n, flag, retention)
  end_note(n, flag)
  call('HSET', note, m, note_text(n))
  call('ZADD', ended, now + retention, m)
  call('ZADD', chore, 'LT', now + retention, slot)
end
