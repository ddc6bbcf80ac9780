#include "storage/redis/scripts.h"

#include "storage/redis/script_parts.h"

namespace tocsin::redis::scripts {

// Jobs without own ids and counts on a topic without capacity: what most are, and the fastest way for them. They come
// in runs of one due time: it, how many, and their records. Those are stored as they come, unless the due time in them
// is not the one that counts: it has passed, or the sequence numbers do not tell when the job was accepted.
const Script& SubmitPlain() {
  static const Script script = Make("submit_plain", {kCommon, kNotes, kLife, R"lua(
local meta, store, job, next, prepare, dead, ended = unpack(KEYS)
local slot, channel, group, n = ARGV[2], ARGV[3], ARGV[4], num(ARGV[6])
local first = next_sequence(known[2])
call('HSET', meta, 'seq', first + n - 1)
local fields, scores, bytes, longest, least, at, i = {}, {}, -31 * n, 0, math.huge, 0, 7
local args, seq, timely = ARGV, first, time_in(first) == now and time_in(first + n - 1) == now
while ARGV[i] do
  local asked, due, last = num(ARGV[i]), when(ARGV[i]), i + 1 + ARGV[i + 1]
  local as_asked, score = due == asked or (asked < 1e12 and timely), digits(due)
  if due < least then least = due end
  for k = i + 2, last do
    local m, rec = pack('>I7', seq), args[k]
    seq = seq + 1
    if not as_asked then rec = with_due(rec, due) end
    fields[at + 1], fields[at + 2], scores[at + 1], scores[at + 2] = m, rec, score, m
    bytes, at = bytes + #rec, at + 2
    if #rec > longest then longest = #rec end
  end
  i = last + 1
end
chunks('HSET', job, fields, 4000)
chunks('ZADD', store, scores, 4000)
add(meta, 'bytes', bytes)
add(meta, 'acc', n)
local old = num(call('ZSCORE', next, slot) or math.huge)
if least < old then
  local tell = wakes(next, least, old)
  call('ZADD', next, least, slot)
  if tell then call('PUBLISH', channel, group .. ' ' .. least) end
end
local held = figures(meta, store, prepare, dead, ended, job)
lengthen(meta, known[3], longest, held[1] == n)
return {now, first, math.min(least, old), held}
)lua"});
  return script;
}

// Everything else. Outcomes as in SubmitOutcome, for as many as were looked at; an over-capacity job has no member.
const Script& Submit() {
  static const Script script = Make("submit", {kCommon, kLife, kNotes, kLimits, R"lua(
local meta, store, job, next, prepare, dead, ended, id, note, count, event, chore = unpack(KEYS)
local slot, channel, group = ARGV[2], ARGV[3], ARGV[4]
)lua",
                                               kMoved, R"lua(
local live, bytes = call('HLEN', job) - call('ZCARD', ended), num(call('HGET', meta, 'bytes') or 0)
local old_bytes = bytes
local max_jobs, max_bytes = limits(meta, ARGV[6], ARGV[7], ARGV[8], live, bytes)
local accepted, cancelled, longest, results = 0, 0, 0, {}
local function found(m, own)
  if m ~= '' and call('HEXISTS', job, m) == 1 then return m end
  return own ~= '' and call('HGET', id, own) or nil
end
local function due_of(m, rec)
  local due = due_in(m, rec)
  return due > 0 and due or -1
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
  uncount(count, event, m, chore, slot)
end
for i = 9, #ARGV, 6 do
  if enough() then break end
  local at, left, mode, given, own, rec = ARGV[i], num(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
  local old = found(given, own)
  local old_rec = old and record_of(job, old)
  local ends = old and call('ZSCORE', ended, old)
  local frees = old and not ends
  local freed = frees and size_of(old_rec) or 0
  local size = size_of(rec)
  if old and mode ~= '1' then
    local same = mode == '2' or sub(old_rec, 16, 23) == sub(rec, 16, 23)
    result(same and 1 or 2, old, due_of(old, old_rec))
  elseif old and call('ZSCORE', prepare, old) then
    result(3, old, due_of(old, old_rec))
  elseif (max_jobs and not frees and live + 1 > max_jobs)
      or (max_bytes and size > freed and bytes - freed + size > max_bytes) then
    result(4)
  else
    local m = pack('>I7', sequence(meta, 1))
    if old then remove(old, old_rec) end
    if frees then live, bytes, cancelled = live - 1, bytes - freed, cancelled + 1 end
    local due = at == '' and -1 or when(at)
    call('HSET', job, m, with_due(rec, math.max(due, 0)))
    if own ~= '' then call('HSET', id, own, m) end
    if due >= 0 then call('ZADD', store, due, m) end
    if left > 0 then call('ZADD', count, left, m) end
    live, bytes, accepted, longest = live + 1, bytes + size, accepted + 1, math.max(longest, #rec)
    result(0, m, due)
  end
end
add(meta, 'bytes', bytes - old_bytes)
add(meta, 'acc', accepted)
add(meta, 'can', cancelled)
local held = figures(meta, store, prepare, dead, ended, job)
if accepted > 0 then lengthen(meta, known[3], longest, held[1] == accepted) end
return {now, results, moved(), held}
)lua"});
  return script;
}

// From scheduled to leased. Jobs leave in the order of (due, sequence), as many as fit into max_bytes; a member without
// its record is dropped here, so that it holds up nobody. Answers two fences, the one of first leases and the one of
// later ones, which have a note.
const Script& Claim() {
  static const Script script = Make("claim", {kCommon, kNotes, R"lua(
local meta, store, job, next, prepare, dead, ended, note, count, event, chore, claim = unpack(KEYS)
local slot, max, lease, max_bytes = ARGV[2], num(ARGV[3]), num(ARGV[4]), num(ARGV[5])
local members = call('ZRANGEBYSCORE', store, '-inf', now, 'LIMIT', 0, max)
local recs, notes, taken, seq, deadline, score = {}, {}, 0, 0, 0, '0'
local function read(n, longest)
  local step = math.max(math.floor(max_bytes / num(longest or max_bytes)), 1)
  if step >= n then return call('HMGET', job, unpack(members)), n end
  local all, bytes = {}, 0
  for from = 1, n, step do
    local last = math.min(from + step - 1, n)
    local some = call('HMGET', job, unpack(members, from, last))
    for i = from, last do
      all[i] = some[i - from + 1]
      bytes = bytes + (all[i] and #all[i] or 0)
    end
    if bytes > max_bytes then return all, last end
  end
  return all, n
end
if #members > 0 then
  local known, n = call('HMGET', meta, 'seq', 'longest')
  recs, n = read(#members, known[2])
  local some_noted = noted(note, dead, ended)
  if some_noted then notes = call('HMGET', note, unpack(members, 1, n)) end
  deadline, seq = now + lease, next_sequence(known[1])
  score = lease_until(deadline, seq % 4096)
  local opening, leased, fields, bytes, last = pack('>I7', seq), {}, {}, 0, 0
  for i = 1, n do
    local m, rec, old = members[i], recs[i], notes[i]
    if rec then
      if taken > 0 and bytes + #rec > max_bytes then break end
      bytes = bytes + #rec
      local at = 2 * taken
      taken = taken + 1
      leased[at + 1], leased[at + 2] = score, m
      if taken < i then members[taken], recs[taken] = m, rec end
      if some_noted then notes[taken] = old or '' end
      if old then
        fields[#fields + 1] = m
        fields[#fields + 1] = opening .. sub(old, 8)
      end
    end
    last = i
  end
  for i = taken + 1, #members do members[i], recs[i], notes[i] = nil, nil, nil end
  -- The first write: at maxmemory Redis refuses a script that begins with one that may need memory.
  call('ZREMRANGEBYRANK', store, 0, last - 1)
  call('HSET', meta, 'seq', seq)
  if taken > 0 then
    if taken >= 16 then
      -- More claims than leases: some were not acked whole. Without its entry a claim is acked job by job.
      if call('HLEN', claim) > call('ZCARD', prepare) then call('UNLINK', claim) end
      call('HSET', claim, score, taken .. ' ' .. digits(bytes - 31 * taken))
    end
    chunks('ZADD', prepare, leased, 4000)
    chunks('HSET', note, fields, 4000)
    add(meta, 'dlv', taken)
    call('ZADD', chore, 'LT', deadline, slot)
    if call('EXISTS', count) == 1 then
      for i = 1, taken do uncount(count, event, members[i], chore, slot) end
    end
  end
end
local least = head(store)
if least then call('ZADD', next, least, slot) else call('ZREM', next, slot) end
return {now, least or -1, figures(meta, store, prepare, dead, ended, job), num(score), seq, deadline,
  table.concat(members), recs, notes}
)lua"});
  return script;
}

// Acks alone, in runs of one fence: 'f' for first leases or 'l' for later ones, the fence, and their members in one
// text. The leases of one claim have one score: where a large one is acked as it was given, as most are, it is compared
// and removed at once, and no record is read. Answers the outcomes as in SettleOutcome, none where all are done, and
// for how many they are.
const Script& Ack() {
  static const Script script = Make("ack", {kCommon, kNotes, R"lua(
local meta, store, job, prepare, dead, ended, id, note, chore, claim = unpack(KEYS)
local slot, retention = ARGV[2], num(ARGV[3])
local outcomes, gone, unread, known, bytes, o, at = {}, {}, {}, {}, 0, 0, 4
local some_noted, some_ids = noted(note, dead, ended), call('EXISTS', id) == 1
local large = 1000 * (call('HGET', meta, 'longest') or bytes_max) > bytes_max
local function append(list, more)
  local last = #list
  for k = 1, #more do list[last + k] = more[k] end
end
local function settle_whole(fence, all)
  local jobs, size = string.match(call('HGET', claim, fence) or '', '^(%d+) (%d+)$')
  if num(jobs) ~= #all / 7 then return false end
  local leased = call('ZRANGEBYSCORE', prepare, fence, fence)
  if table.concat(leased) ~= all then return false end
  call('HDEL', claim, fence)
  call('ZREMRANGEBYSCORE', prepare, fence, fence)
  for k = o + 1, o + #leased do outcomes[k] = 0 end
  bytes, bytes_read, o = bytes + size, bytes_read + size, o + #leased
  append(gone, leased)
  return true
end
-- As many as may be read.
local function members_of(all)
  local members = {}
  for k = 1, #all / 7 do
    local m = sub(all, 7 * k - 6, 7 * k)
    if large then bytes_read = bytes_read + call('HSTRLEN', job, m) end
    if bytes_read > bytes_max and o + k > 1 then break end
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
      ok = is_of(text, kind, fence)
      known[m] = text
    else
      ok = ok and kind == 'f' and score == fence
    end
    o = o + 1
    outcomes[o] = ok and 0 or 2
    if ok then
      mine[#mine + 1] = m
      done[m] = true
    end
  end
  if #mine == 0 then return end
  -- At once, so that a token that comes again in another run is not good any more.
  call('ZREM', prepare, unpack(mine))
  append(gone, mine)
  append(unread, mine)
end
while ARGV[at] and not enough() do
  local kind, fence, all = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if some_noted or some_ids or kind ~= 'f' or not settle_whole(fence, all) then
    local members = members_of(all)
    if #members > 0 then settle_each(kind, fence, members) end
    if #members < #all / 7 then break end
  end
  at = at + 3
end
local function free_ids(recs)
  for i = 1, #unread do
    local own = recs[i] and id_of(recs[i]) or ''
    if own ~= '' then call('HDEL', id, own) end
  end
end
if #gone > 0 then
  local recs = #unread > 0 and call('HMGET', job, unpack(unread)) or {}
  for i = 1, #unread do bytes = bytes + (recs[i] and size_of(recs[i]) or 0) end
  if retention > 0 then
    local kept, ends, until_then = {}, {}, digits(now + retention)
    for i = 1, #gone do
      local n = read_note(known[gone[i]])
      n.fence, n.flags = 0, 1
      kept[2 * i - 1], kept[2 * i], ends[2 * i - 1], ends[2 * i] = gone[i], note_text(n), until_then, gone[i]
    end
    chunks('HSET', note, kept, 4000)
    chunks('ZADD', ended, ends, 4000)
    call('ZADD', chore, 'LT', now + retention, slot)
  else
    chunks('HDEL', job, gone, 4000)
    if some_noted then chunks('HDEL', note, gone, 4000) end
    if some_ids then free_ids(recs) end
  end
  add(meta, 'bytes', -bytes)
  add(meta, 'ack', #gone)
end
return {now, #gone < o and outcomes or {}, figures(meta, store, prepare, dead, ended, job), o}
)lua"});
  return script;
}

namespace {

// A failed attempt: due again after its back-off (model/topic.h), or dead, where it was the last or is made the last.
constexpr const char* kRetry = R"lua(
local function back_off(m, tries, base, most)
  local rest = math.min(base * 2 ^ math.min(math.max(tries - 1, 0), 34), most)
  local seq = upack('>I7', m)
  local seed = ((seq % 2147483647) * 1024 + slot_number) % 2147483647
  local spread = math.floor(rest / 4) + 1
  return rest + (seed * 48271 + tries * 69621) % 2147483647 % spread
end
local function retry(m, n, rec, delay, reason, last)
  n.fence, n.tries, n.flags, n.reason = 0, n.tries + 1, n.flags % 8, reason
  call('ZREM', prepare, m)
  call('HSET', note, m, note_text(n))
  if last or n.tries >= upack('>I2', rec, 10) then
    call('ZADD', dead, now, m)
    return false
  end
  local due = now + (delay or back_off(m, n.tries, base, most))
  call('HSET', job, m, with_due(rec, due))
  call('ZADD', store, due, m)
  return true
end
)lua";

}  // namespace

// Outcomes as in SettleOutcome, for as many as were looked at.
const Script& Settle() {
  static const Script script = Make("settle", {kCommon, kNotes, R"lua(
local meta, store, job, next, prepare, dead, ended, id, note, chore = unpack(KEYS)
local slot, slot_number, retention, base, most = ARGV[2], num(ARGV[3]), num(ARGV[4]), num(ARGV[5]), num(ARGV[6])
local channel, group = ARGV[7], ARGV[8]
)lua",
                                               kMoved, kRetry, R"lua(
although_full()
local outcomes, acked, nacked, died, bytes = {}, 0, 0, 0, 0
local function ack(m, n, rec)
  acked, bytes = acked + 1, bytes + size_of(rec)
  call('ZREM', prepare, m)
  if retention > 0 then
    n.fence, n.flags = 0, 1
    call('HSET', note, m, note_text(n))
    call('ZADD', ended, now + retention, m)
    call('ZADD', chore, 'LT', now + retention, slot)
    return
  end
  local own = id_of(rec)
  call('HDEL', job, m)
  call('HDEL', note, m)
  if own ~= '' then call('HDEL', id, own) end
end
for i = 9, #ARGV, 6 do
  if enough() then break end
  local m, first, fence, kind, value, reason = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], num(ARGV[i + 4]), ARGV[i + 5]
  local text, rec, score = call('HGET', note, m), record_of(job, m), call('ZSCORE', prepare, m)
  local held = score == fence and first == 'f'
  if text then held = score and is_of(text, first, fence) end
  local outcome = 0
  if not held or not rec then
    outcome = 2
  else
    local n = read_note(text)
    if kind == 'a' then
      ack(m, n, rec)
    elseif kind == 'n' or kind == 'b' then
      nacked = nacked + 1
      if not retry(m, n, rec, value, reason, kind == 'b') then died, outcome = died + 1, 1 end
    elseif kind == 'e' then
      -- The fence stays, so the note of a first lease takes it over.
      if not text then call('HSET', note, m, note_text({fence = fence, tries = 0, flags = 8, reason = ''})) end
      call('ZADD', prepare, lease_until(now + value, 0), m)
      call('ZADD', chore, 'LT', now + value, slot)
    else
      n.fence, n.flags = 0, n.flags % 8
      call('ZREM', prepare, m)
      call('HSET', note, m, note_text(n))
      call('ZADD', store, due_in(m, rec), m)
    end
  end
  outcomes[#outcomes + 1] = outcome
end
add(meta, 'bytes', -bytes)
add(meta, 'ack', acked)
add(meta, 'nak', nacked)
add(meta, 'die', died)
return {now, outcomes, moved(), figures(meta, store, prepare, dead, ended, job)}
)lua"});
  return script;
}

// Rolls back leases that ran out, forgets what was retained long enough, and removes the events of jobs that count no
// more. Only the group's owner does: another epoch, or the same number in another node's hands after a failover that
// forgot one, is refused with -1.
const Script& Chores() {
  static const Script script = Make("chores", {kCommon, kNotes, R"lua(
local meta, store, job, next, prepare, dead, ended, id, note, chore, owner, count, event = unpack(KEYS)
local slot, slot_number, epoch, budget, base, most = ARGV[2], num(ARGV[3]), ARGV[4], num(ARGV[5]), num(ARGV[6]), num(ARGV[7])
local channel, group = ARGV[9], ARGV[10]
local holder = call('HMGET', owner, 'epoch', 'node')
if holder[1] ~= epoch or holder[2] ~= ARGV[8] then return {now, -1} end
)lua",
                                               kMoved, kRetry, R"lua(
although_full()
local changed, died = 0, 0
for _, m in ipairs(call('ZRANGEBYSCORE', prepare, '-inf', '(' .. lease_until(now + 1, 0), 'LIMIT', 0, budget)) do
  if enough() then break end
  changed = changed + 1
  local rec = record_of(job, m)
  if rec then
    if not retry(m, read_note(call('HGET', note, m)), rec, nil, 'lease expired') then died = died + 1 end
  else
    call('ZREM', prepare, m)
  end
end
add(meta, 'exp', changed)
add(meta, 'die', died)
for _, m in ipairs(call('ZRANGEBYSCORE', ended, '-inf', now, 'LIMIT', 0, budget)) do
  if enough() then break end
  changed = changed + 1
  local rec = record_of(job, m)
  local own = rec and id_of(rec) or ''
  call('HDEL', job, m)
  call('HDEL', note, m)
  if own ~= '' then call('HDEL', id, own) end
  call('ZREM', ended, m)
end
local function remove_events()
  while true do
    local m = call('ZRANGEBYSCORE', count, '-inf', '(0', 'LIMIT', 0, 1)[1]
    if not m then return false end
    if events_max == 0 then return true end
    local events = call('ZRANGEBYLEX', event, '[' .. m, last_event(m), 'LIMIT', 0, events_max)
    chunks('ZREM', event, events, 4000)
    if #events < events_max then call('ZREM', count, m) end
    events_max = events_max - #events
  end
end
local lease = head(prepare)
local at = remove_events() and now or math.min(lease and time_in(lease) or math.huge, head(ended) or math.huge)
if at < math.huge then call('ZADD', chore, at, slot) else call('ZREM', chore, slot) end
return {now, changed, moved(), figures(meta, store, prepare, dead, ended, job), at < math.huge and at or -1}
)lua"});
  return script;
}

}  // namespace tocsin::redis::scripts
