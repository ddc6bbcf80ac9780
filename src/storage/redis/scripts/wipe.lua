-- UNLINK frees in the background: the time here does not depend on the number of jobs.
local function wipe(slot)
  redis.call('ZREM', KEYS[1], slot)
  redis.call('ZREM', KEYS[2], slot)
  for i = 3, #KEYS do redis.call('UNLINK', KEYS[i]) end
end
