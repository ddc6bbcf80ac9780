-- The groups of the prefix, as Groups::Text has them. ARGV[1] if it is new; nothing if it is not, and nobody knows.
local groups, topics = unpack(KEYS)
local stored = redis.call('GET', groups)
if stored then return stored end
if redis.call('EXISTS', topics) == 1 then return '' end
redis.call('SET', groups, ARGV[1])
return ARGV[1]
