-- One topic in the hash of topics: its settings (record.h), with its birth at the end. Every change gets a number above
-- all before it; time is in it, so that a number that a failover has lost does not come again. `proof` says up to which
-- birth the topic was dropped: an entry that is missing without it was lost.
local call, sub, num = redis.call, string.sub, tonumber
local topics, version, proof, channel, name = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
local old, dropped = call('HGET', topics, name), num(call('GET', proof) or 0)

-- The number at the beginning.
local function number(text) return (struct.unpack(TOPIC_NUMBER_FORMAT, text)) end
local function birth_of(stored) return number(sub(stored, -BIRTH_BYTES)) end
local function digits(n) return string.format('%.0f', n) end

local function changed()
  local seconds, micros = unpack(call('TIME'))
  local before = call('GET', version) or '-1'
  local stamp = math.max(seconds * 1000000 + micros, before + 1)
  call('SET', version, digits(stamp))
  call('PUBLISH', channel, table.concat({MESSAGE_TOPICS, before, digits(stamp), name}, ' '))
  return stamp
end
