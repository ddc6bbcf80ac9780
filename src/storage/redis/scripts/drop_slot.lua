-- The slot remembers for a while which life has ended, so that a late open_slot of that life is refused.
--@include wipe
local slot, birth, remembered_seconds = ARGV[1], ARGV[2], 60
if tonumber(redis.call('HGET', KEYS[3], 'birth') or 0) > tonumber(birth) then return 0 end
wipe(slot)
redis.call('HSET', KEYS[3], 'gone', birth)
redis.call('EXPIRE', KEYS[3], remembered_seconds)
return 1
