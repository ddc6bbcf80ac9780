-- Acks alone, in runs of one fence: the kind of its lease, the fence, and the members in one text. The leases of one
-- claim have one score: if a large one is acked as it was given, as most are, it is compared and removed at once, and no
-- record is read. Answers the outcomes as in SettleOutcome, none if all are done, and for how many they are.
--@include common
--@include records
--@include ending
local meta, store, job, prepare, dead, ended, id, note, chore, claim = unpack(KEYS)
local slot, retention = ARGV[2], num(ARGV[3])
-- `gone`: the members of all acked jobs; `began`: when their leases did, if they are retained; `unread`: those whose
-- records have to be read still.
local outcomes, gone, began, unread, known, bytes, answered = {}, {}, {}, {}, {}, 0, 0
local some_noted, some_ids = has_notes(note, dead, ended), call('EXISTS', id) == 1
local large = JOBS_MAX * (call('HGET', meta, 'longest') or SCRIPT_BYTES_MAX) > SCRIPT_BYTES_MAX

local function append(list, more)
  local last = #list
  for k = 1, #more do list[last + k] = more[k] end
end

local function leave(members, at)
  append(gone, members)
  for k = retention > 0 and #began + 1 or #gone + 1, #gone do began[k] = at end
end

local function settle_whole(fence, all)
  local jobs, size, at = read_claim(call('HGET', claim, fence))
  if num(jobs) ~= #all / MEMBER_BYTES then return false end
  local leased = call('ZRANGEBYSCORE', prepare, fence, fence)
  if table.concat(leased) ~= all then return false end
  call('HDEL', claim, fence)
  call('ZREMRANGEBYSCORE', prepare, fence, fence)
  for k = answered + 1, answered + #leased do outcomes[k] = SETTLE_OK end
  bytes, bytes_read, answered = bytes + size, bytes_read + size, answered + #leased
  leave(leased, num(at) or 0)
  return true
end

local function began_at(kind, fence)
  if kind ~= LEASE_FIRST then return time_in(fence) end
  local _, _, at = read_claim(call('HGET', claim, fence))
  return num(at) or 0
end

-- As many as may be read.
local function members_of(all)
  local members = {}
  for k = 1, #all / MEMBER_BYTES do
    local m = sub(all, MEMBER_BYTES * (k - 1) + 1, MEMBER_BYTES * k)
    if large then bytes_read = bytes_read + call('HSTRLEN', job, m) end
    if bytes_read > SCRIPT_BYTES_MAX and answered + k > 1 then break end
    members[k] = m
  end
  return members
end

local function settle_each(kind, fence, members)
  local scores, done, mine = call('ZMSCORE', prepare, unpack(members)), {}, {}
  local notes = some_noted and call('HMGET', note, unpack(members)) or {}
  for k, m in ipairs(members) do
    local score, text = scores[k], notes[k]
    local ok = score and not done[m]
    if ok and text then
      ok = note_has_fence(text, kind, fence)
      known[m] = text
    else
      ok = ok and kind == LEASE_FIRST and score == fence
    end
    answered = answered + 1
    outcomes[answered] = ok and SETTLE_OK or SETTLE_STALE
    if ok then
      mine[#mine + 1] = m
      done[m] = true
    end
  end
  if #mine == 0 then return end
  -- At once, so that a token that comes again in another run is no longer good.
  call('ZREM', prepare, unpack(mine))
  leave(mine, retention > 0 and began_at(kind, fence))
  append(unread, mine)
end

local function retain_all()
  local kept, ends, until_then = {}, {}, digits(now + retention)
  for i = 1, #gone do
    local n = read_note(known[gone[i]])
    n.last = n.extensions > 0 and n.since or began[i]
    end_note(n, NOTE_DONE)
    kept[2 * i - 1], kept[2 * i], ends[2 * i - 1], ends[2 * i] = gone[i], note_text(n), until_then, gone[i]
  end
  in_chunks('HSET', note, kept)
  in_chunks('ZADD', ended, ends)
  call('ZADD', chore, 'LT', now + retention, slot)
end

local function forget_all(recs)
  in_chunks('HDEL', job, gone)
  if some_noted then in_chunks('HDEL', note, gone) end
  for i = 1, some_ids and #unread or 0 do
    local own = recs[i] and id_of(recs[i]) or ''
    if own ~= '' then call('HDEL', id, own) end
  end
end

local at = 4
while ARGV[at] and not read_enough() do
  local kind, fence, all = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if some_noted or some_ids or kind ~= LEASE_FIRST or not settle_whole(fence, all) then
    local members = members_of(all)
    if #members > 0 then settle_each(kind, fence, members) end
    if #members < #all / MEMBER_BYTES then break end
  end
  at = at + 3
end
if #gone > 0 then
  local recs = #unread > 0 and call('HMGET', job, unpack(unread)) or {}
  for i = 1, #unread do bytes = bytes + (recs[i] and size_of(recs[i]) or 0) end
  if retention > 0 then retain_all() else forget_all(recs) end
  add(meta, 'bytes', -bytes)
  add(meta, 'ack', #gone)
end
return {now, #gone < answered and outcomes or {}, figures(meta, store, prepare, dead, ended, job), answered}
