-- Removes a member at once. ARGV: channel, id.
local lease, record, version = unpack(KEYS)
local channel, self = unpack(ARGV)
redis.call('HDEL', record, self)
if redis.call('ZREM', lease, self) == 1 then
  redis.call('INCR', version)
  redis.call('PUBLISH', channel, self)
end
return 'OK'
