-- Removes what an earlier life of the topic has left behind; what a later one has stays.
--@include common
--@include wipe
local meta, store, job, prepare, dead, ended = unpack(KEYS, 3)
local slot, birth = ARGV[2], ARGV[3]
local known = call('HMGET', meta, 'birth', 'gone')
if known[1] ~= birth then
  if num(known[1] or 0) > num(birth) or num(known[2] or 0) >= num(birth) then
    return redis.error_reply('ENDED slot ' .. slot .. ' is not of this topic any more')
  end
  wipe(slot)
  call('HSET', meta, 'birth', birth)
end
return {now, figures(meta, store, prepare, dead, ended, job)}
