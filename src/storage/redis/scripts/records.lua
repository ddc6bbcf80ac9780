-- Records, notes and leases (record.h, scripts.h). After common.

-- Records may be large: a script that has read this much leaves the rest of its batch to the next one.
local bytes_read = 0
local function record_of(job, m)
  local rec = call('HGET', job, m)
  if rec then bytes_read = bytes_read + #rec end
  return rec
end
local function read_enough() return bytes_read >= SCRIPT_BYTES_MAX end

-- What the topic's bytes count of a record.
local function size_of(rec) return #rec - RECORD_HEAD end

-- A due time that was asked for as a delay counts from the time in the job's sequence number.
local function due_in(m, rec)
  local due = upack(DUE_FORMAT, rec)
  return due < DELAYED and due or due - DELAYED + time_in(upack(MEMBER_FORMAT, m))
end
local function with_due(rec, due) return pack(DUE_FORMAT, due) .. sub(rec, DUE_BYTES + 1) end

-- The field of the hash of own ids; empty for a job without one.
local function id_of(rec)
  local key_size, id_size = upack(KEY_AND_ID_FORMAT, rec, KEY_SIZE_AT)
  if id_size == 0 then return '' end
  return sub(rec, KEY_SIZE_AT, ID_SIZE_AT - 1) .. sub(rec, RECORD_HEAD + 1, RECORD_HEAD + key_size + id_size)
end

local function read_note(text)
  local n = {fence = 0, tries = 0, flags = 0, reason = '', last = 0, since = 0, extensions = 0, holder = ''}
  if not text then return n end
  n.fence, n.tries, n.flags = upack(NOTE_FORMAT, text)
  local reason_end = #text
  if reason_end >= NOTE_HEAD + TAIL_BYTES and string.byte(text, -1) == TAIL_MARK then
    local last, since, extensions, size = upack(TAIL_FORMAT, text, reason_end - TAIL_BYTES + 1)
    local holder_end = reason_end - TAIL_BYTES
    if holder_end - size >= NOTE_HEAD then
      n.last, n.since, n.extensions, n.holder = last, since, extensions, sub(text, holder_end - size + 1, holder_end)
      reason_end = holder_end - size
    end
  end
  n.reason = sub(text, NOTE_HEAD + 1, reason_end)
  return n
end
local function note_text(n)
  local text = pack(NOTE_FORMAT, n.fence, n.tries, n.flags) .. n.reason
  -- A reason that may be taken for a tail gets a tail.
  if n.last + n.since + n.extensions == 0 and string.byte(text, -1) ~= TAIL_MARK then return text end
  return text .. n.holder .. pack(TAIL_FORMAT, n.last, n.since, n.extensions, #n.holder, TAIL_MARK)
end

-- Of an entry of claims: how many jobs, their bytes, when it was made, and for whom. Before, programs wrote only the
-- first two.
local function read_claim(text) return string.match(text or '', '^(%d+) (%d+) ?(%d*) ?(.*)$') end

-- Whether some scheduled or leased job has a note.
local function has_notes(note, dead, ended)
  return call('HLEN', note) > call('ZCARD', dead) + call('ZCARD', ended)
end

local function lease_until(ends, low) return digits((ends - YEAR_2020_MS) * SEQUENCES_PER_MS + low) end

-- Whether a note has this fence, of a first or of a later lease.
local function note_has_fence(text, kind, fence)
  local first = upack(NOTE_FLAGS_FORMAT, text, NOTE_FLAGS_AT) >= NOTE_FIRST_LEASE
  return sub(text, 1, FENCE_BYTES) == pack(FENCE_FORMAT, fence) and first == (kind == LEASE_FIRST)
end
