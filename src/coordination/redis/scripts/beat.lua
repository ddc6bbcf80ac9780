-- Removes members whose lease ran out, renews or makes the lease of one, and answers the list of members (roster.h).
-- ARGV: channel, id, record, session in ms, the longest lease in ms, whether to join.
local lease, record, version = unpack(KEYS)
local channel, self, self_record, session, lease_max, joins = unpack(ARGV)
local call = redis.call
local seconds, micros = unpack(call('TIME'))
local now = seconds * 1000 + math.floor(micros / 1000)
local changed = false

local function digits(ms) return string.format('%.0f', ms) end

-- A lease that seems to be longer was given before somebody set the clock back.
local function cut_long_leases()
  local last = digits(now + lease_max)
  for _, id in ipairs(call('ZRANGEBYSCORE', lease, '(' .. last, '+inf')) do call('ZADD', lease, last, id) end
end

local function remove_expired()
  for _, id in ipairs(call('ZRANGEBYSCORE', lease, '-inf', digits(now))) do
    call('ZREM', lease, id)
    call('HDEL', record, id)
    changed = true
  end
end

local function members()
  local list, leases = {}, call('ZRANGE', lease, 0, -1, 'WITHSCORES')
  for i = 1, #leases, 2 do
    list[#list + 1] = {leases[i], call('HGET', record, leases[i]) or '', tonumber(leases[i + 1])}
  end
  return list
end

-- At maxmemory Redis refuses a script whose first write may need memory. After this one it refuses nothing.
call('ZREM', lease, '')
cut_long_leases()
remove_expired()
local held = call('ZSCORE', lease, self)
if joins == '1' or (held and call('HGET', record, self) ~= self_record) then
  call('HSET', record, self, self_record)
  changed = true
  held = true
end
if held then call('ZADD', lease, digits(now + session), self) end
if changed then
  call('INCR', version)
  call('PUBLISH', channel, self)
end
return {tonumber(call('GET', version) or '0'), now, held and 1 or 0, members()}
