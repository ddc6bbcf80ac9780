-- How a lease ends. After records, with the locals of the keys.

-- When the lease with this score began; 0 if nobody knows.
local claims_began = {}
local function lease_began(n, score)
  if n.extensions > 0 then return n.since end
  if not claims_began[score] then
    local _, _, began = read_claim(call('HGET', claim, score))
    claims_began[score] = num(began) or 0
  end
  local later = n.fence > 0 and n.flags < NOTE_FIRST_LEASE
  return claims_began[score] > 0 and claims_began[score] or later and time_in(n.fence) or 0
end

local function end_lease(m, n)
  n.fence, n.flags, n.since, n.extensions, n.holder = 0, n.flags % NOTE_FIRST_LEASE, 0, 0, ''
  call('ZREM', prepare, m)
  call('HSET', note, m, note_text(n))
end

-- Of the jobs that failed most often in this call, one that may fail again and one that died: its attempts, its member,
-- and how long it rests. And the members of the jobs that ended, which are named no more.
local worst, worst_dead, over = {0, '', 0}, {0, '', 0}, {}

local function failures()
  return {worst[1], worst[2], worst[3], worst_dead[1], worst_dead[2], worst_dead[3], table.concat(over)}
end

-- A failed attempt: due again after the delay, or dead if it was the last one or is made the last one. False: it is
-- dead.
local function fail_attempt(m, score, n, rec, delay, reason, last)
  n.last, n.tries, n.reason = lease_began(n, score), n.tries + 1, reason
  end_lease(m, n)
  local is_dead = last or n.tries >= upack(MAX_ATTEMPTS_FORMAT, rec, MAX_ATTEMPTS_AT)
  local known = is_dead and worst_dead or worst
  if n.tries > known[1] then known[1], known[2], known[3] = n.tries, m, is_dead and 0 or delay end
  if is_dead then
    over[#over + 1] = m
    call('ZADD', dead, now, m)
    return false
  end
  local due = now + delay
  call('HSET', job, m, with_due(rec, due))
  call('ZADD', store, due, m)
  return true
end
