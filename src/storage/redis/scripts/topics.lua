-- One topic in the hash of topics: its settings (record.h), with its birth at the end. Every change gets a number above
-- all before it; time is in it, so that a number that a failover has lost does not come again.
local call, sub = redis.call, string.sub
local topics, version, channel, name = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local old = call('HGET', topics, name)

local function birth_of(stored) return sub(stored, -BIRTH_BYTES) end

local function changed()
  local seconds, micros = unpack(call('TIME'))
  local stamp = math.max(seconds * 1000000 + micros, (call('GET', version) or 0) + 1)
  call('SET', version, string.format('%.0f', stamp))
  call('PUBLISH', channel, MESSAGE_TOPICS)
  return stamp
end
