-- From scheduled to leased. Jobs leave in the order of (due, sequence), as many as fit into the bytes that the caller
-- has room for, notes included. If the first does not, none is leased, and the answer ends with its bytes. A member
-- without its record is dropped here, so that it holds up nobody. Answers two fences, the one of first leases and the
-- one of later ones, which have a note.
--@include common
--@include records
--@include counting
local meta, store, job, next, prepare, dead, ended, note, count, event, chore, claim = unpack(KEYS)
local slot, max, lease, bytes_max = ARGV[2], num(ARGV[3]), num(ARGV[4]), num(ARGV[5])
local channel, group, holder = ARGV[6], ARGV[7], ARGV[8]
local members = call('ZRANGEBYSCORE', store, '-inf', now, 'LIMIT', 0, max)
local recs, notes, seq, deadline, score, too_large = {}, {}, 0, 0, '0', 0

-- The records of the first n members, and how many those are: fewer if they are large.
local function read_records(n, longest)
  local step = math.max(math.floor(SCRIPT_BYTES_MAX / num(longest or SCRIPT_BYTES_MAX)), 1)
  if step >= n then return call('HMGET', job, unpack(members)), n end
  local all, bytes = {}, 0
  for from = 1, n, step do
    local last = math.min(from + step - 1, n)
    local some = call('HMGET', job, unpack(members, from, last))
    for i = from, last do
      all[i] = some[i - from + 1]
      bytes = bytes + (all[i] and #all[i] or 0)
    end
    if bytes > SCRIPT_BYTES_MAX then return all, last end
  end
  return all, n
end

-- Moves those that have a record and fit to the front of members, recs and notes. Answers how many those are, how many
-- members were looked at, the bytes of the records, the scores of the leases, and the notes that change.
local function choose(n, members, recs, notes, score, some_noted)
  local opening, leased, fields, taken, bytes, last = pack(FENCE_FORMAT, seq), {}, {}, 0, 0, 0
  local room = bytes_max
  for i = 1, n do
    local m, rec, old = members[i], recs[i], notes[i]
    if rec then
      room = room - #rec - (old and #old or 0)
      if room < 0 then
        if taken == 0 then too_large = bytes_max - room end
        break
      end
      bytes = bytes + #rec
      local at = 2 * taken
      taken = taken + 1
      leased[at + 1], leased[at + 2] = score, m
      if taken < i then members[taken], recs[taken] = m, rec end
      if some_noted then notes[taken] = old or '' end
      if old then
        fields[#fields + 1] = m
        fields[#fields + 1] = opening .. sub(old, FENCE_BYTES + 1)
      end
    end
    last = i
  end
  for i = taken + 1, #members do members[i], recs[i], notes[i] = nil, nil, nil end
  return taken, last, bytes, leased, fields
end

-- An ack of a whole claim removes its entry. Others leave it behind: if most entries are such, some of them go. Looking
-- at entries costs as much as a few claims, so it is done once in a while.
local claims_each, looked_at = 256, 512
local function forget_claims(claims)
  if claims % claims_each > 0 or call('HLEN', claim) <= 2 * call('ZCARD', prepare) then return end
  local over = {}
  for _, lease in ipairs(call('HRANDFIELD', claim, looked_at)) do
    if call('ZCOUNT', prepare, lease, lease) == 0 then over[#over + 1] = lease end
  end
  in_chunks('HDEL', claim, over)
end

local function lease_all()
  local n
  local known = call('HMGET', meta, 'seq', 'longest', 'claims')
  local claims = num(known[3] or 0) + 1
  recs, n = read_records(#members, known[2])
  local some_noted = has_notes(note, dead, ended)
  if some_noted then notes = call('HMGET', note, unpack(members, 1, n)) end
  deadline, seq = now + lease, next_sequence(known[1])
  -- With the lease in it: claims of two moments, one for longer, may end in one millisecond.
  score = lease_until(deadline, (seq + lease) % SEQUENCES_PER_MS)
  local taken, last, bytes, leased, fields = choose(n, members, recs, notes, score, some_noted)
  if last == 0 then
    deadline = 0
    return false
  end
  -- The first write: at maxmemory Redis refuses a script that begins with one that may need memory.
  call('ZREMRANGEBYRANK', store, 0, last - 1)
  call('HSET', meta, 'seq', seq, 'claims', claims)
  if taken == 0 then return true end
  forget_claims(claims)
  call('HSET', claim, score, table.concat({taken, digits(bytes - RECORD_HEAD * taken), digits(now), holder}, ' '))
  in_chunks('ZADD', prepare, leased)
  in_chunks('HSET', note, fields)
  add(meta, 'dlv', taken)
  -- The owner of the group, if it is another node, does not know of a lease that ends first.
  local first = channel ~= '' and call('ZRANGE', chore, 0, 0, 'WITHSCORES')
  if first and deadline < num(first[2] or math.huge) then publish(channel, 'chore ' .. group .. ' ' .. deadline) end
  call('ZADD', chore, 'LT', deadline, slot)
  if call('EXISTS', count) == 1 then
    for i = 1, taken do stop_counting(count, event, members[i], chore, slot) end
  end
  return true
end

-- A claim that takes nothing writes nothing, unless the index is wrong: a Redis that refuses writes must not end the
-- wait of who asked.
local writes = #members > 0 and lease_all()
local least = head(store)
if not writes and (least or -1) ~= num(call('ZSCORE', next, slot) or -1) then
  writes = true
  allow_when_full()
end
if writes then
  -- The owner of the group, if it is another node, does not know of the job that is first now.
  if least and channel ~= '' and wakes(next, least, num(call('ZSCORE', next, slot) or math.huge)) then
    publish(channel, group .. ' ' .. least)
  end
  if least then call('ZADD', next, least, slot) else call('ZREM', next, slot) end
end
return {now, least or -1, figures(meta, store, prepare, dead, ended, job), num(score), seq, deadline,
  table.concat(members), recs, notes, too_large}
