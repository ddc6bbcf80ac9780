-- At the home: the serial under which a slot's unused room is taken back. -1 for a slot that is not registered, or no
-- longer is after a failover: a serial alone would keep it from ever being registered.
if tonumber(redis.call('HGET', KEYS[1], 'era') or -1) ~= tonumber(ARGV[1]) then return -1 end
if redis.call('HEXISTS', KEYS[1], 's' .. ARGV[2]) == 0 then return -1 end
return redis.call('HINCRBY', KEYS[1], 's' .. ARGV[2], 1)
