-- A new owner of a group: whatever the old one still sends with its epoch is refused from here on.
redis.call('HDEL', KEYS[1], '')  -- Redis does not refuse what comes after it at maxmemory
redis.call('HSET', KEYS[1], 'node', ARGV[1])
return redis.call('HINCRBY', KEYS[1], 'epoch', 1)
