-- Settlements of any kind. Answers outcomes as in SettleOutcome, for as many as were looked at.
--@include common
--@include records
--@include ending
--@include slot
--@include leases
local slot_number, retention, base, most = num(ARGV[5]), num(ARGV[6]), num(ARGV[7]), num(ARGV[8])
--@include retry
allow_when_full()
local outcomes, acked, nacked, died, bytes = {}, 0, 0, 0, 0

local function ack(m, score, n, rec)
  acked, bytes = acked + 1, bytes + size_of(rec)
  over[#over + 1] = m
  call('ZREM', prepare, m)
  if retention > 0 then
    n.last = lease_began(n, score)
    retain(note, ended, chore, slot, m, n, NOTE_DONE, retention)
  else
    forget(job, note, id, m, rec)
  end
end

-- The note takes over what the score and its claim told: the fence of a first lease, when it began, and who holds it.
local function extend(m, score, n, fence, first, lease)
  if n.extensions == 0 then
    local _, _, _, holder = read_claim(call('HGET', claim, score))
    n.since, n.holder = lease_began(n, score), holder or ''
  end
  n.fence, n.flags = num(fence), n.flags % NOTE_FIRST_LEASE + (first == LEASE_FIRST and NOTE_FIRST_LEASE or 0)
  n.extensions = math.min(n.extensions + 1, EXTENSIONS_MAX)
  call('HSET', note, m, note_text(n))
  call('ZADD', prepare, lease_until(now + lease, 0), m)
  call('ZADD', chore, 'LT', now + lease, slot)
end

local function settle(m, first, fence, kind, value, reason)
  local text, rec, score = call('HGET', note, m), record_of(job, m), call('ZSCORE', prepare, m)
  local held = score == fence and first == LEASE_FIRST
  if text then held = score and note_has_fence(text, first, fence) end
  if not held or not rec then return SETTLE_STALE end
  local n = read_note(text)
  if kind == KIND_ACK then
    ack(m, score, n, rec)
  elseif kind == KIND_NACK or kind == KIND_BURY then
    nacked = nacked + 1
    if not retry(m, score, n, rec, num(value), reason, kind == KIND_BURY) then
      died = died + 1
      return SETTLE_DEAD
    end
  elseif kind == KIND_EXTEND then
    extend(m, score, n, fence, first, num(value))
  else
    end_lease(m, n)
    local due = due_in(m, rec)
    if value ~= '' then
      due = now + num(value)
      call('HSET', job, m, with_due(rec, due))
    end
    call('ZADD', store, due, m)
  end
  return SETTLE_OK
end

for i = 9, #ARGV, SETTLE_ITEM do
  if read_enough() then break end
  outcomes[#outcomes + 1] = settle(unpack(ARGV, i, i + SETTLE_ITEM - 1))
end
add(meta, 'bytes', -bytes)
add(meta, 'ack', acked)
add(meta, 'nak', nacked)
add(meta, 'die', died)
return {now, outcomes, update_head(), figures(meta, store, prepare, dead, ended, job), failures()}
