-- Removes a slot. KEYS are the topics, the two indexes of its group, and its own keys. UNLINK frees in the background:
-- the time here does not depend on the number of jobs.
local function wipe(slot)
  redis.call('ZREM', KEYS[2], slot)
  redis.call('ZREM', KEYS[3], slot)
  for i = 4, #KEYS do redis.call('UNLINK', KEYS[i]) end
end
