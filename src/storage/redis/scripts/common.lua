-- What most scripts share. ARGV[1] is the time if the caller's clock counts; if it is empty, Redis' own clock does.
-- Numbers stay below 2^53, so that Lua's doubles hold them exactly. Redis prints a number that it is handed with %.17g,
-- which takes longer than the command: what goes to many jobs goes as text.
local call, num, pack, upack, sub = redis.call, tonumber, struct.pack, struct.unpack, string.sub
local now = num(ARGV[1])
if not now then
  local seconds, micros = unpack(call('TIME'))
  now = seconds * 1000 + math.floor(micros / 1000)
end

-- A due time that was asked for: a moment, or a delay.
local function moment_of(text)
  local asked = num(text)
  if asked < ABSOLUTE_MIN then return now + asked end
  return asked > now and asked or now
end

local function digits(n) return string.format('%.0f', n) end

-- At maxmemory Redis refuses a script whose first write may need memory. After this one it refuses nothing: for the
-- scripts that, in the end, free memory.
local function allow_when_full() call('HDEL', KEYS[1], '') end

local function next_sequence(last) return math.max(num(last or 0) + 1, (now - YEAR_2020_MS) * SEQUENCES_PER_MS) end

-- Of a sequence number or a lease.
local function time_in(n) return math.floor(n / SEQUENCES_PER_MS) + YEAR_2020_MS end

-- One command takes this many arguments at most: more would not fit on Lua's stack.
local arguments_max = 4000
local function in_chunks(command, key, list)
  for i = 1, #list, arguments_max do
    call(command, key, unpack(list, i, math.min(i + arguments_max - 1, #list)))
  end
end

local function add(meta, name, by)
  if by ~= 0 then call('HINCRBY', meta, name, by) end
end

-- The lowest score.
local function head(key)
  local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return first[2] and num(first[2])
end

local function first_after(key, time)
  local first = call('ZRANGEBYSCORE', key, '(' .. time, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return first[2] and num(first[2])
end

-- A channel that begins with a hash tag is sharded, unless the server is one before Redis 7 (channels.h).
local function publish(channel, message)
  if sub(channel, 1, 1) == '{' and type(redis.pcall('SPUBLISH', channel, message)) == 'number' then return end
  call('PUBLISH', channel, message)
end

-- Whether the owner of the group has to be told of a slot's first job, which was another one before. It knows what was
-- due already, and sleeps until the first job that it knows of and that was not.
local function wakes(next, least, old)
  if least <= now then return old > now end
  return (least < old or old <= now) and least < (first_after(next, now) or math.huge)
end

-- The longest record that the slot has held since it was empty says how many of them may be read at once. An emptied
-- slot forgets a length above this one.
local ordinary_length = 4096
local function note_length(meta, known, length, was_empty)
  known = num(known or 0)
  if length > known or (was_empty and known > ordinary_length) then call('HSET', meta, 'longest', length) end
end

-- In the order of SlotFigures (slots.h).
local function figures(meta, store, prepare, dead, ended, job)
  return {call('HLEN', job), call('ZCARD', prepare), call('ZCARD', dead), call('ZCARD', ended),
    call('ZCOUNT', store, '-inf', now),
    unpack(call('HMGET', meta, 'bytes', 'acc', 'dlv', 'ack', 'nak', 'exp', 'die', 'red', 'can', 'pur'))}
end
