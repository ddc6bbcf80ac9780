-- Kinds and outcomes as in AmendKind and AmendOutcome, for as many as were looked at. With each outcome the due time or,
-- if there is no room, how many bytes are needed.
--@include common
--@include records
--@include ending
--@include counting
--@include limits
--@include slot
--@include lookup
--@include leases
--@include sweeping
local retention, old_bytes = num(ARGV[5]), num(call('HGET', meta, 'bytes') or 0)
local bytes, cancelled, redriven, revoked, died, results = old_bytes, 0, 0, 0, 0, {}
local _, max_bytes = limits(meta, '', ARGV[6], ARGV[7], 0, bytes)

local function cancel(m, rec, n)
  call('ZREM', store, m)
  stop_counting(count, event, m, chore, slot)
  bytes, cancelled = bytes - size_of(rec), cancelled + 1
  over[#over + 1] = m
  if retention > 0 then
    retain(note, ended, chore, slot, m, n, NOTE_CANCELLED, retention)
  else
    forget(job, note, id, m, rec)
  end
end

-- The changed record; or nil, and the bytes that it needs.
local function new_payload(m, rec, payload)
  local key_size, id_size, headers_size = upack(SIZES_FORMAT, rec, KEY_SIZE_AT)
  local changed = sub(rec, 1, RECORD_HEAD + key_size + id_size + headers_size) .. payload
  local grows = #changed - #rec
  if grows > 0 and max_bytes and bytes - freed + grows > max_bytes then return nil, grows end
  bytes = bytes + grows
  call('HSET', job, m, changed)
  note_length(meta, call('HGET', meta, 'longest'), #changed, false)
  return changed
end

local function set_due(m, rec, due)
  call('HSET', job, m, with_due(rec, due))
  call('ZADD', store, due, m)
  return AMEND_DONE, due
end

local function reschedule(m, rec, due)
  local old = call('ZSCORE', store, m)
  if old and num(old) <= now then stop_counting(count, event, m, chore, slot) end
  if upack(TRIGGER_FORMAT, rec, TRIGGER_AT) == TRIGGER_COUNT then
    local n = read_note(call('HGET', note, m))
    n.flags = NOTE_EITHER
    call('HSET', note, m, note_text(n))
  end
  return set_due(m, rec, due)
end

local function revoke(m, score, n, rec)
  revoked = revoked + 1
  if not fail_attempt(m, score, n, rec, 0, REVOKED_REASON) then died = died + 1 end
  return AMEND_DONE, now
end

local function set_attempts(m, rec, attempts)
  local changed = pack(MAX_ATTEMPTS_FORMAT, attempts)
  call('HSET', job, m, sub(rec, 1, MAX_ATTEMPTS_AT - 1) .. changed .. sub(rec, MAX_ATTEMPTS_AT + #changed))
  return AMEND_DONE, 0
end

-- A consumer sees the attempt that it makes: one more than are used up.
local function shown_attempt(state, text)
  return read_note(text).tries + ((state == STATE_LEASED or state == STATE_DONE) and 1 or 0)
end

local unchanged = UNCHANGED_OUTCOMES
local function amend(kind, given, own, number, seen_state, seen_due, seen_attempt, has_payload, payload)
  local m = found(given, own)
  if not m then return AMEND_UNKNOWN, 0 end
  local text, rec = call('HGET', note, m), record_of(job, m)
  local state, score = state_of(m, text)
  if unchanged[kind][state] then return unchanged[kind][state], 0 end
  local as_seen = seen_state == '' or num(seen_state) == state
  if not as_seen or (seen_due ~= '' and num(seen_due) ~= due_in(m, rec)) then return AMEND_CHANGED, 0 end
  if seen_attempt ~= '' and num(seen_attempt) ~= shown_attempt(state, text) then return AMEND_CHANGED, 0 end
  if kind == KIND_CANCEL then
    cancel(m, rec, read_note(text))
    return AMEND_DONE, 0
  end
  if kind == KIND_REMOVE then
    erase(m, rec)
    over[#over + 1] = m
    return AMEND_DONE, 0
  end
  if kind == KIND_FIRE then
    stop_counting(count, event, m, chore, slot)
    return set_due(m, rec, now)
  end
  if kind == KIND_REDRIVE then
    redrive(m, rec)
    redriven = redriven + 1
    over[#over + 1] = m
    return AMEND_DONE, now
  end
  if kind == KIND_REVOKE then return revoke(m, score, read_note(text), rec) end
  if kind == KIND_ATTEMPTS then return set_attempts(m, rec, num(number)) end
  if has_payload == '1' or kind == KIND_PAYLOAD then
    local lacks
    rec, lacks = new_payload(m, rec, payload)
    if not rec then return AMEND_OVER_CAPACITY, lacks end
  end
  if kind == KIND_PAYLOAD then return AMEND_DONE, 0 end
  return reschedule(m, rec, moment_of(number))
end

-- What ends jobs, or lets consumers end them, works also on a full Redis.
local frees = {[KIND_CANCEL] = true, [KIND_REMOVE] = true, [KIND_REDRIVE] = true, [KIND_REVOKE] = true}
if frees[ARGV[8]] then allow_when_full() end
for i = 8, #ARGV, AMEND_ITEM do
  if read_enough() then break end
  local outcome, due = amend(unpack(ARGV, i, i + AMEND_ITEM - 1))
  results[#results + 1] = outcome
  results[#results + 1] = due
end
add(meta, 'bytes', bytes - freed - old_bytes)
add(meta, 'can', cancelled)
add(meta, 'red', redriven)
add(meta, 'exp', revoked)
add(meta, 'die', died)
add(meta, 'pur', purged)
return {now, results, update_head(), figures(meta, store, prepare, dead, ended, job), failures()}
