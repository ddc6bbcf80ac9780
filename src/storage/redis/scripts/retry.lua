-- A failed attempt: due again after its back-off (BackOff of model/topic.h), or dead if it was the last one or is made
-- the last one. After slot and records, and the locals slot_number, base and most.
local function back_off(m, tries)
  local rest = math.min(base * 2 ^ math.min(math.max(tries - 1, 0), BACK_OFF_DOUBLINGS_MAX), most)
  local seed = ((upack(MEMBER_FORMAT, m) % BACK_OFF_PRIME) * SLOTS_MAX + slot_number) % BACK_OFF_PRIME
  local spread = math.floor(rest / BACK_OFF_JITTER_PART) + 1
  return rest + (seed * BACK_OFF_SEED_FACTOR + tries * BACK_OFF_ATTEMPT_FACTOR) % BACK_OFF_PRIME % spread
end

local function end_lease(m, n)
  n.fence, n.flags = 0, n.flags % NOTE_FIRST_LEASE
  call('ZREM', prepare, m)
  call('HSET', note, m, note_text(n))
end

-- False: it is dead.
local function retry(m, n, rec, delay, reason, last)
  n.tries, n.reason = n.tries + 1, reason
  end_lease(m, n)
  if last or n.tries >= upack(MAX_ATTEMPTS_FORMAT, rec, MAX_ATTEMPTS_AT) then
    call('ZADD', dead, now, m)
    return false
  end
  local due = now + (delay or back_off(m, n.tries))
  call('HSET', job, m, with_due(rec, due))
  call('ZADD', store, due, m)
  return true
end
