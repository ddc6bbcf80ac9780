-- The slot remembers for a while which life has ended, so that a late open_slot of that life is refused. With the last
-- slot of its group the group forgets the topic, whose name comes only then.
--@include wipe
local call, slot, birth, name, remembered_seconds = redis.call, ARGV[1], tonumber(ARGV[2]), ARGV[3], 60
if tonumber(call('HGET', KEYS[4], 'birth') or 0) > birth then return 0 end
wipe(slot)
call('HSET', KEYS[4], 'gone', ARGV[2])
call('EXPIRE', KEYS[4], remembered_seconds)
local kept = name ~= '' and call('HGET', KEYS[1], name)
if kept and struct.unpack(TOPIC_NUMBER_FORMAT, kept, #kept - BIRTH_BYTES + 1) <= birth then
  call('HDEL', KEYS[1], name)
end
return 1
