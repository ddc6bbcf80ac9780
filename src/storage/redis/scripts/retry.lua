-- A failed attempt that is made again after its back-off (BackOff of model/topic.h), unless a delay is given. After
-- leases, and the locals slot_number, base and most.
local function back_off(m, tries)
  local rest = math.min(base * 2 ^ math.min(math.max(tries - 1, 0), BACK_OFF_DOUBLINGS_MAX), most)
  local seed = ((upack(MEMBER_FORMAT, m) % BACK_OFF_PRIME) * SLOTS_MAX + slot_number) % BACK_OFF_PRIME
  local spread = math.floor(rest / BACK_OFF_JITTER_PART) + 1
  return rest + (seed * BACK_OFF_SEED_FACTOR + tries * BACK_OFF_ATTEMPT_FACTOR) % BACK_OFF_PRIME % spread
end

-- False: it is dead.
local function retry(m, score, n, rec, delay, reason, last)
  return fail_attempt(m, score, n, rec, delay or back_off(m, n.tries + 1), reason, last)
end
