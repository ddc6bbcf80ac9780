-- From here on the slot takes jobs of this life of the topic. Removes what a life has left behind that was dropped; what
-- a later one has stays. Jobs of an earlier life that nobody has dropped are taken over: Redis has lost the topic, and
-- it was created again. The group keeps the topic, so that it can be found again.
--@include common
--@include wipe
local meta, store, job, prepare, dead, ended = unpack(KEYS, 4)
local slot, birth, dropped, name, text = ARGV[2], num(ARGV[3]), num(ARGV[4]), ARGV[5], ARGV[6]
local known = call('HMGET', meta, 'birth', 'gone')
local last, gone = num(known[1] or 0), num(known[2] or 0)
if last ~= birth then
  if last > birth or gone >= birth then
    return redis.error_reply('ENDED slot ' .. slot .. ' is not of this topic any more')
  end
  allow_when_full()
  if gone > 0 or (last > 0 and last <= dropped) then wipe(slot) end
  call('HSET', meta, 'birth', ARGV[3])
end

local function number(stored, at) return (upack(TOPIC_NUMBER_FORMAT, stored, at)) end

-- Whether the group keeps this life in this version, or a later one.
local function is_kept(stored)
  local its_birth = number(stored, #stored - BIRTH_BYTES + 1)
  return its_birth > birth or (its_birth == birth and number(stored, 1) >= number(text, 1))
end
local kept = call('HGET', KEYS[1], name)
if not kept or not is_kept(kept) then
  allow_when_full()
  call('HSET', KEYS[1], name, text .. pack(TOPIC_NUMBER_FORMAT, birth))
end
return {now, figures(meta, store, prepare, dead, ended, job)}
