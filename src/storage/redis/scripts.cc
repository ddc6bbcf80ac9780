#include "storage/redis/scripts.h"

#include "storage/redis/script_parts.h"

namespace tocsin::redis::scripts {

// Jobs without own ids and counts on a topic without capacity: what most are, and the fastest way for them.
const Script& SubmitPlain() {
  static const Script script = Make("submit_plain", {kCommon, R"lua(
local meta, store, job, next, prepare, dead, ended = unpack(KEYS)
local slot, channel, group = ARGV[2], ARGV[3], ARGV[4]
local n = (#ARGV - 4) / 2
local first = sequence(meta, n)
local fields, scores, bytes, least = {}, {}, 0, math.huge
for i = 0, n - 1 do
  local due, rec, m = when(ARGV[5 + 2 * i]), ARGV[6 + 2 * i], pack('>I7', first + i)
  if due < least then least = due end
  bytes = bytes + #rec - 24
  local at = 2 * i
  fields[at + 1], fields[at + 2], scores[at + 1], scores[at + 2] = m, rec, due, m
end
chunks('HSET', job, fields, 4000)
chunks('ZADD', store, scores, 4000)
add(meta, 'bytes', bytes)
add(meta, 'acc', n)
local old = num(call('ZSCORE', next, slot) or math.huge)
if least < old then
  local earliest = head(next) or math.huge
  call('ZADD', next, least, slot)
  if least < earliest or (least <= now and old > now) then call('PUBLISH', channel, group .. ' ' .. least) end
end
return {now, first, math.min(least, old), figures(meta, store, prepare, dead, ended, job)}
)lua"});
  return script;
}

// Everything else. Outcomes as in SubmitOutcome; an over-capacity job has no member.
const Script& Submit() {
  static const Script script = Make("submit", {kCommon, kNotes, kLimits, R"lua(
local meta, store, job, next, prepare, dead, ended, id, note, count, event = unpack(KEYS)
local slot, channel, group = ARGV[2], ARGV[3], ARGV[4]
local old_head, earliest = num(call('ZSCORE', next, slot) or math.huge), head(next) or math.huge
local live, bytes = call('HLEN', job) - call('ZCARD', ended), num(call('HGET', meta, 'bytes') or 0)
local max_jobs, max_bytes = limits(meta, ARGV[5], ARGV[6], ARGV[7], live, bytes)
local accepted, cancelled, results = 0, 0, {}
local function found(m, own)
  if m ~= '' and call('HEXISTS', job, m) == 1 then return m end
  return own ~= '' and call('HGET', id, own) or nil
end
local function due_of(m)
  local s = call('ZSCORE', store, m)
  if s then return num(s) end
  local n = call('HGET', note, m)
  return n and upack('>I7', n, 10) or -1
end
local function result(outcome, m, due)
  results[#results + 1] = outcome
  results[#results + 1] = m and upack('>I7', m) or 0
  results[#results + 1] = due or 0
end
local function remove(m, rec)
  local own = id_of(rec)
  call('HDEL', job, m)
  call('HDEL', note, m)
  if own ~= '' then call('HDEL', id, own) end
  call('ZREM', store, m)
  call('ZREM', dead, m)
  call('ZREM', ended, m)
  uncount(count, event, m)
end
for i = 8, #ARGV, 6 do
  local at, left, mode, given, own, rec = ARGV[i], num(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
  local old = found(given, own)
  local old_rec = old and call('HGET', job, old)
  local ends = old and call('ZSCORE', ended, old)
  local frees = old and not ends
  local freed = frees and #old_rec - 24 or 0
  local size = #rec - 24
  if old and mode ~= '1' then
    local same = mode == '2' or sub(old_rec, 9, 16) == sub(rec, 9, 16)
    result(same and 1 or 2, old, due_of(old))
  elseif old and call('ZSCORE', prepare, old) then
    result(3, old, due_of(old))
  elseif (max_jobs and not frees and live + 1 > max_jobs)
      or (max_bytes and size > freed and bytes - freed + size > max_bytes) then
    result(4)
  else
    if old then remove(old, old_rec) end
    if frees then live, bytes, cancelled = live - 1, bytes - freed, cancelled + 1 end
    local m = pack('>I7', sequence(meta, 1))
    local due = at == '' and -1 or when(at)
    call('HSET', job, m, rec)
    if own ~= '' then call('HSET', id, own, m) end
    if due >= 0 then call('ZADD', store, due, m) end
    if left > 0 then call('ZADD', count, left, m) end
    live, bytes, accepted = live + 1, bytes + size, accepted + 1
    result(0, m, due)
  end
end
call('HSET', meta, 'bytes', bytes)
add(meta, 'acc', accepted)
add(meta, 'can', cancelled)
local least = touch(store, next, slot)
if least >= 0 and least < old_head and (least < earliest or (least <= now and old_head > now)) then
  call('PUBLISH', channel, group .. ' ' .. least)
end
return {now, results, least, figures(meta, store, prepare, dead, ended, job)}
)lua"});
  return script;
}

// From scheduled to leased. Jobs leave in the order of (due, sequence); a member without its record is dropped here, so
// that it holds up nobody.
const Script& Claim() {
  static const Script script = Make("claim", {kCommon, kNotes, R"lua(
local meta, store, job, next, prepare, dead, ended, note, count, event, chore = unpack(KEYS)
local slot, max, lease, max_bytes = ARGV[2], num(ARGV[3]), num(ARGV[4]), num(ARGV[5])
local due = call('ZRANGEBYSCORE', store, '-inf', now, 'WITHSCORES', 'LIMIT', 0, max)
local n = #due / 2
local out, taken, more = {}, 0, 0
if n > 0 then
  local members = {}
  for i = 1, n do members[i] = due[2 * i - 1] end
  local recs, notes = call('HMGET', job, unpack(members)), call('HMGET', note, unpack(members))
  local deadline, fence = now + lease, sequence(meta, 1)
  local opening, leased, fields, bytes, last = pack('>I7', fence), {}, {}, 0, 0
  for i = 1, n do
    local m, rec, old = members[i], recs[i], notes[i]
    if rec then
      bytes = bytes + #rec
      if taken > 0 and bytes > max_bytes then
        more = 1
        break
      end
      local at = 2 * taken
      taken = taken + 1
      leased[at + 1], leased[at + 2], fields[at + 1] = deadline, m, m
      if old then
        fields[at + 2] = opening .. sub(old, 8, 9) .. pack('>I7', due[2 * i]) .. sub(old, 17)
      else
        local own = id_of(rec)
        fields[at + 2] = opening .. pack('>I2I7I1I4I2', 0, due[2 * i], 0, #rec - 24, #own) .. own
      end
      local o = 4 * taken
      out[o - 3], out[o - 2], out[o - 1], out[o] = m, due[2 * i], old or '', rec
    end
    last = i
  end
  call('ZREMRANGEBYRANK', store, 0, last - 1)
  if taken > 0 then
    chunks('ZADD', prepare, leased, 4000)
    chunks('HSET', note, fields, 4000)
    add(meta, 'dlv', taken)
    call('ZADD', chore, 'LT', deadline, slot)
    if call('EXISTS', count) == 1 then
      for i = 1, taken do uncount(count, event, fields[2 * i - 1]) end
    end
  end
  out.fence, out.deadline = fence, deadline
end
local least = touch(store, next, slot)
return {now, least, more, out.fence or 0, out.deadline or 0, figures(meta, store, prepare, dead, ended, job), out}
)lua"});
  return script;
}

// Acks alone. A fence that is not the one in the note is stale: the outcome is 2, as in SettleOutcome.
const Script& Ack() {
  static const Script script = Make("ack", {kCommon, R"lua(
local meta, store, job, prepare, dead, ended, id, note, chore = unpack(KEYS)
local slot, retention = ARGV[2], num(ARGV[3])
local members = {}
for i = 4, #ARGV, 2 do members[#members + 1] = ARGV[i] end
local notes = call('HMGET', note, unpack(members))
local outcomes, gone, ids, kept, bytes, done = {}, {}, {}, {}, 0, {}
for i = 1, #members do
  local m, text = members[i], notes[i]
  if text and not done[m] and sub(text, 1, 7) == ARGV[3 + 2 * i] then
    done[m] = true
    local size, n = upack('>I4I2', text, 18)
    bytes = bytes + size
    gone[#gone + 1] = m
    if n > 0 then ids[#ids + 1] = sub(text, 24, 23 + n) end
    if retention > 0 then
      kept[#kept + 1] = m
      kept[#kept + 1] = pack('>I7', 0) .. sub(text, 8, 16) .. '\1' .. sub(text, 18)
    end
    outcomes[i] = 0
  else
    outcomes[i] = 2
  end
end
if #gone > 0 then
  chunks('ZREM', prepare, gone, 4000)
  if retention > 0 then
    chunks('HSET', note, kept, 4000)
    for i = 1, #gone do call('ZADD', ended, now + retention, gone[i]) end
    call('ZADD', chore, 'LT', now + retention, slot)
  else
    chunks('HDEL', job, gone, 4000)
    chunks('HDEL', note, gone, 4000)
    if #ids > 0 then chunks('HDEL', id, ids, 4000) end
  end
  add(meta, 'bytes', -bytes)
  add(meta, 'ack', #gone)
end
return {now, outcomes, figures(meta, store, prepare, dead, ended, job)}
)lua"});
  return script;
}

namespace {

// A failed attempt: due again after its back-off (model/topic.h), or dead.
constexpr const char* kRetry = R"lua(
local function back_off(m, tries, base, most)
  local rest = math.min(base * 2 ^ math.min(math.max(tries - 1, 0), 34), most)
  local seq = upack('>I7', m)
  local seed = ((seq % 2147483647) * 1024 + slot_number) % 2147483647
  local spread = math.floor(rest / 4) + 1
  return rest + (seed * 48271 + tries * 69621) % 2147483647 % spread
end
local function retry(m, n, rec, delay, reason)
  n.fence, n.tries, n.reason = 0, n.tries + 1, reason
  call('ZREM', prepare, m)
  if n.tries >= upack('>I2', rec, 3) then
    call('HSET', note, m, note_text(n))
    call('ZADD', dead, now, m)
    return false
  end
  n.due = now + (delay or back_off(m, n.tries, base, most))
  call('HSET', note, m, note_text(n))
  call('ZADD', store, n.due, m)
  return true
end
)lua";

}  // namespace

const Script& Settle() {
  static const Script script = Make("settle", {kCommon, kNotes, R"lua(
local meta, store, job, next, prepare, dead, ended, id, note, chore = unpack(KEYS)
local slot, slot_number, retention, base, most = ARGV[2], num(ARGV[3]), num(ARGV[4]), num(ARGV[5]), num(ARGV[6])
local channel, group = ARGV[7], ARGV[8]
)lua",
                                               kRetry, R"lua(
local old_head = num(call('ZSCORE', next, slot) or math.huge)
local outcomes, acked, nacked, died, bytes = {}, 0, 0, 0, 0
for i = 9, #ARGV, 5 do
  local m, fence, kind, value, reason = ARGV[i], ARGV[i + 1], ARGV[i + 2], num(ARGV[i + 3]), ARGV[i + 4]
  local text = call('HGET', note, m)
  local outcome = 0
  if not text or sub(text, 1, 7) ~= fence then
    outcome = 2
  else
    local n = read_note(text)
    if kind == 'a' then
      acked, bytes = acked + 1, bytes + n.size
      call('ZREM', prepare, m)
      if retention > 0 then
        n.fence, n.flags = 0, 1
        call('HSET', note, m, note_text(n))
        call('ZADD', ended, now + retention, m)
        call('ZADD', chore, 'LT', now + retention, slot)
      else
        call('HDEL', job, m)
        call('HDEL', note, m)
        if n.id ~= '' then call('HDEL', id, n.id) end
      end
    elseif kind == 'n' then
      nacked = nacked + 1
      if not retry(m, n, call('HGET', job, m), value, reason) then died, outcome = died + 1, 1 end
    elseif kind == 'e' then
      call('ZADD', prepare, now + value, m)
      call('ZADD', chore, 'LT', now + value, slot)
    else
      n.fence = 0
      call('ZREM', prepare, m)
      call('HSET', note, m, note_text(n))
      call('ZADD', store, n.due, m)
    end
  end
  outcomes[#outcomes + 1] = outcome
end
add(meta, 'bytes', -bytes)
add(meta, 'ack', acked)
add(meta, 'nak', nacked)
add(meta, 'die', died)
local earliest = head(next) or math.huge
local least = touch(store, next, slot)
if least >= 0 and least < old_head and (least < earliest or (least <= now and old_head > now)) then
  call('PUBLISH', channel, group .. ' ' .. least)
end
return {now, outcomes, least, figures(meta, store, prepare, dead, ended, job)}
)lua"});
  return script;
}

// Rolls back leases that ran out and forgets what was retained long enough. Only the group's owner does: an epoch that
// is not the group's is refused with -1.
const Script& Chores() {
  static const Script script = Make("chores", {kCommon, kNotes, R"lua(
local meta, store, job, next, prepare, dead, ended, id, note, chore, owner = unpack(KEYS)
local slot, slot_number, epoch, budget, base, most = ARGV[2], num(ARGV[3]), ARGV[4], num(ARGV[5]), num(ARGV[6]), num(ARGV[7])
if call('HGET', owner, 'epoch') ~= epoch then return {now, -1} end
)lua",
                                               kRetry, R"lua(
local expired = call('ZRANGEBYSCORE', prepare, '-inf', now, 'LIMIT', 0, budget)
local died = 0
for i = 1, #expired do
  local m = expired[i]
  local text, rec = call('HGET', note, m), call('HGET', job, m)
  if rec then
    if not retry(m, text and read_note(text) or new_note(rec), rec, nil, 'lease expired') then died = died + 1 end
  else
    call('ZREM', prepare, m)
  end
end
add(meta, 'exp', #expired)
add(meta, 'die', died)
local forgotten = call('ZRANGEBYSCORE', ended, '-inf', now, 'LIMIT', 0, budget)
for i = 1, #forgotten do
  local m = forgotten[i]
  local text = call('HGET', note, m)
  local own = text and read_note(text).id or ''
  call('HDEL', job, m)
  call('HDEL', note, m)
  if own ~= '' then call('HDEL', id, own) end
  call('ZREM', ended, m)
end
local at = math.min(head(prepare) or math.huge, head(ended) or math.huge)
if at < math.huge then call('ZADD', chore, at, slot) else call('ZREM', chore, slot) end
return {now, #expired + #forgotten, touch(store, next, slot), figures(meta, store, prepare, dead, ended, job),
  at < math.huge and at or -1}
)lua"});
  return script;
}

}  // namespace tocsin::redis::scripts
