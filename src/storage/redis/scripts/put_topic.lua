-- Compare and set: an older version, another content of the same one, or a change of a topic that was dropped and
-- created again meanwhile alters nothing. Answers what is stored. A topic that is not there is born, unless there are
-- ARGV[5] already (0: any number); then the answer is -1.
--@include topics
local text, birth = ARGV[3], ARGV[4]

local function slots_of(stored) return sub(stored, TOPIC_SLOTS_AT, TOPIC_SLOTS_AT + TOPIC_NUMBER_BYTES - 1) end

local function version_of(stored) return (struct.unpack(TOPIC_NUMBER_FORMAT, stored)) end

if old and sub(old, 1, -BIRTH_BYTES - 1) == text then return {1, old} end
if old and (birth_of(old) ~= birth or slots_of(old) ~= slots_of(text) or version_of(old) >= version_of(text)) then
  return {0, old}
end
local most = tonumber(ARGV[5])
if not old and most > 0 and call('HLEN', topics) >= most then return {-1, ''} end
local stamp = changed()
local stored = text .. (old and birth or struct.pack(TOPIC_NUMBER_FORMAT, stamp))
call('HSET', topics, name, stored)
return {1, stored}
