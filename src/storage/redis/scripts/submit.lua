-- Jobs of any kind; ARGV[9] is how many arguments each has. Behind the others a copy has its state, when it died, and
-- its note (record.h). These are empty for a new job, and left out if there are no copies. Answers outcomes as in
-- SubmitOutcome, for as many as were looked at; an over-capacity job has no member.
--@include common
--@include life
--@include records
--@include ending
--@include counting
--@include limits
--@include slot
--@include lookup
local live, bytes = call('HLEN', job) - call('ZCARD', ended), num(call('HGET', meta, 'bytes') or 0)
local old_bytes = bytes
local max_jobs, max_bytes = limits(meta, ARGV[6], ARGV[7], ARGV[8], live, bytes)
local accepted, cancelled, longest, known, results, replaced = 0, 0, 0, 0, {}, {}

local function result(outcome, m, due)
  results[#results + 1] = outcome
  results[#results + 1] = m and upack(MEMBER_FORMAT, m) or 0
  results[#results + 1] = due or 0
end

local function result_of(outcome, m, rec)
  local due = due_in(m, rec)
  result(outcome, m, due > 0 and due or -1)
end

local function same_content(rec, other)
  return sub(rec, FINGERPRINT_AT, KEY_SIZE_AT - 1) == sub(other, FINGERPRINT_AT, KEY_SIZE_AT - 1)
end

local function remove(m, rec)
  replaced[#replaced + 1] = m
  forget(job, note, id, m, rec)
  call('ZREM', store, m)
  call('ZREM', dead, m)
  call('ZREM', ended, m)
  stop_counting(count, event, m, chore, slot)
end

local function next_member()
  local sequence = next_sequence(call('HGET', meta, 'seq'))
  call('HSET', meta, 'seq', sequence)
  return pack(MEMBER_FORMAT, sequence)
end

-- A copy is due when the job was, however long ago.
local function due_of(at, state)
  if at == '' then return -1 end
  local asked = num(at)
  return state ~= '' and asked >= ABSOLUTE_MIN and asked or moment_of(at)
end

local function store_new(m, at, left, own, rec, state, died, history)
  local due = due_of(at, state)
  call('HSET', job, m, with_due(rec, math.max(due, 0)))
  if own ~= '' then call('HSET', id, own, m) end
  if history ~= '' then call('HSET', note, m, history) end
  if num(state) == STATE_DEAD then
    call('ZADD', dead, died == '' and now or died, m)
  elseif due >= 0 then
    call('ZADD', store, due, m)
  end
  if left > 0 then call('ZADD', count, left, m) end
  live, bytes, accepted, longest = live + 1, bytes + size_of(rec), accepted + 1, math.max(longest, #rec)
  result(SUBMIT_ACCEPTED, m, due)
end

local function submit(at, left, on_conflict, given, own, rec, state, died, history)
  local old = found(given, own)
  local old_rec = old and record_of(job, old)
  local replaces_live = old and not call('ZSCORE', ended, old)
  local freed, size = replaces_live and size_of(old_rec) or 0, size_of(rec)
  if old and on_conflict ~= CONFLICT_REPLACE then
    local same = on_conflict == CONFLICT_KEEP or same_content(old_rec, rec)
    known = known + (same and 1 or 0)
    return result_of(same and SUBMIT_DUPLICATE or SUBMIT_CONFLICT, old, old_rec)
  end
  if old and call('ZSCORE', prepare, old) then return result_of(SUBMIT_IN_FLIGHT, old, old_rec) end
  if (max_jobs and not replaces_live and live + 1 > max_jobs)
      or (max_bytes and size > freed and bytes - freed + size > max_bytes) then
    return result(SUBMIT_OVER_CAPACITY)
  end
  -- The first write: a Redis that is full refuses it, and with it the script. After the removal it would refuse nothing.
  local m = next_member()
  if old then remove(old, old_rec) end
  if replaces_live then live, bytes, cancelled = live - 1, bytes - freed, cancelled + 1 end
  store_new(m, at, num(left), own, rec, state or '', died or '', history or '')
end

local each = num(ARGV[9])
for i = 10, #ARGV, each do
  if read_enough() then break end
  submit(unpack(ARGV, i, i + each - 1))
end
-- A duplicate is relied on as a new job is, and the first call may have gone through another connection. WAIT
-- (redis.wait_replicas) waits for the last write of this one, so there has to be one. A full Redis may refuse it.
if known > 0 and accepted == 0 then redis.pcall('HSET', meta, 'seq', call('HGET', meta, 'seq')) end
add(meta, 'bytes', bytes - old_bytes)
add(meta, 'acc', accepted)
add(meta, 'can', cancelled)
local held = figures(meta, store, prepare, dead, ended, job)
if accepted > 0 then note_length(meta, known_longest, longest, held[1] == accepted) end
return {now, results, update_head(), held, table.concat(replaced)}
