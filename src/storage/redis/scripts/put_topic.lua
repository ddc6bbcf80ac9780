-- Compare and set: an older version, another content of the same one, or a change of a topic that was dropped and
-- created again meanwhile alters nothing. A topic that the caller knows, and that is missing though nobody has dropped
-- it, is put back with its birth. One that is not known is born, unless there are ARGV[6] already (0: any number);
-- PUT_LOOK asks the caller to look for it in its slots first. PUT_RESTORE only puts back. Answers the outcome as in
-- PutOutcome, what is stored, and up to which birth the topic was dropped.
--@include topics
local text, birth, mode, most = ARGV[3], number(ARGV[4]), ARGV[5], num(ARGV[6])

local function slots_of(stored) return sub(stored, TOPIC_SLOTS_AT, TOPIC_SLOTS_AT + TOPIC_NUMBER_BYTES - 1) end

local function put(outcome, its_birth)
  local stored = text .. struct.pack(TOPIC_NUMBER_FORMAT, its_birth)
  call('HSET', topics, name, stored)
  return {outcome, stored, dropped}
end

local function put_back()
  call('HDEL', topics, '')  -- Redis does not refuse what comes after it at maxmemory
  changed()
  return put(PUT_BACK, birth)
end

local same = old and sub(old, 1, -BIRTH_BYTES - 1) == text
if same and (mode ~= PUT_RESTORE or birth_of(old) == birth) then return {PUT_STORED, old, dropped} end
if mode == PUT_RESTORE then
  if old and birth_of(old) >= birth then return {PUT_REFUSED, old, dropped} end
  if dropped >= birth then return {PUT_DROPPED, old or '', dropped} end
  return put_back()
end
if old then
  if birth_of(old) ~= birth or slots_of(old) ~= slots_of(text) or number(old) >= number(text) then
    return {PUT_REFUSED, old, dropped}
  end
  changed()
  return put(PUT_STORED, birth)
end
if birth > dropped then return put_back() end
if mode == PUT_LOOK then return {PUT_UNKNOWN, '', dropped} end
if most > 0 and call('HLEN', topics) >= most then return {PUT_FULL, '', dropped} end
return put(PUT_STORED, math.max(changed(), dropped + 1))
