#include "storage/redis/script_parts.h"
#include "storage/redis/scripts.h"

namespace tocsin::redis::scripts {
namespace {

// A job by its member or its own id, and the state that it is in.
constexpr const char* kLookUp = R"lua(
local function found(m, own)
  if m ~= '' and call('HEXISTS', job, m) == 1 then return m end
  return own ~= '' and call('HGET', id, own) or nil
end
local function state_of(m, text)
  if call('ZSCORE', prepare, m) then return 1 end
  if call('ZSCORE', dead, m) then return 2 end
  if call('ZSCORE', ended, m) then return upack('>I1', text, 10) % 4 == 1 and 3 or 4 end
  return 0
end
)lua";

}  // namespace

// Kinds and outcomes as in AmendKind and AmendOutcome, for as many as were looked at; with them the due time or, where
// there is no room, how much is needed.
const Script& Amend() {
  static const Script script = Make("amend", {kCommon, kNotes, kLimits, R"lua(
local meta, store, job, next, prepare, dead, ended, id, note, count, event, chore = unpack(KEYS)
local slot, channel, group = ARGV[2], ARGV[3], ARGV[4]
local retention = num(ARGV[5])
)lua",
                                              kLookUp, kMoved, R"lua(
local old_bytes = num(call('HGET', meta, 'bytes') or 0)
local bytes, cancelled, results = old_bytes, 0, {}
local _, max_bytes = limits(meta, '', ARGV[6], ARGV[7], 0, bytes)
local function cancel(m, rec, n)
  call('ZREM', store, m)
  uncount(count, event, m, chore, slot)
  bytes, cancelled = bytes - size_of(rec), cancelled + 1
  if retention > 0 then
    n.flags = 2
    call('HSET', note, m, note_text(n))
    call('ZADD', ended, now + retention, m)
    call('ZADD', chore, 'LT', now + retention, slot)
  else
    local own = id_of(rec)
    call('HDEL', job, m)
    call('HDEL', note, m)
    if own ~= '' then call('HDEL', id, own) end
  end
end
local function new_payload(m, rec, payload)
  local kl, il, hl = upack('>I2I2I4', rec, 24)
  local changed = sub(rec, 1, 31 + kl + il + hl) .. payload
  local grows = #changed - #rec
  if grows > 0 and max_bytes and bytes + grows > max_bytes then return nil, grows end
  bytes = bytes + grows
  call('HSET', job, m, changed)
  lengthen(meta, call('HGET', meta, 'longest'), #changed, false)
  return changed
end
local function reschedule(m, rec, due)
  local old = call('ZSCORE', store, m)
  if old and num(old) <= now then uncount(count, event, m, chore, slot) end
  if upack('>I1', rec, 9) == 1 then
    local n = read_note(call('HGET', note, m))
    n.flags = 4
    call('HSET', note, m, note_text(n))
  end
  call('HSET', job, m, with_due(rec, due))
  call('ZADD', store, due, m)
  return due
end
if ARGV[8] == '0' then although_full() end
for i = 8, #ARGV, 6 do
  if enough() then break end
  local kind, m, at, has, payload = ARGV[i], found(ARGV[i + 1], ARGV[i + 2]), ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
  local outcome, due = 0, 0
  if not m then
    outcome = 3
  else
    local text, rec = call('HGET', note, m), record_of(job, m)
    local state = state_of(m, text)
    if state == 1 then
      outcome = 1
    elseif state ~= 0 then
      outcome = (state == 4 and kind == '0') and 0 or 2
    elseif kind == '0' then
      cancel(m, rec, read_note(text))
    elseif kind == '1' then
      local lacks = 0
      if has == '1' then rec, lacks = new_payload(m, rec, payload) end
      if rec then due = reschedule(m, rec, when(at)) else outcome, due = 4, lacks end
    elseif kind == '2' then
      local changed, lacks = new_payload(m, rec, payload)
      if not changed then outcome, due = 4, lacks end
    else
      due = now
      uncount(count, event, m, chore, slot)
      call('HSET', job, m, with_due(rec, now))
      call('ZADD', store, now, m)
    end
  end
  results[#results + 1] = outcome
  results[#results + 1] = due
end
add(meta, 'bytes', bytes - old_bytes)
add(meta, 'can', cancelled)
return {now, results, moved(), figures(meta, store, prepare, dead, ended, job)}
)lua"});
  return script;
}

// Outcomes as in CountOutcome, for as many as were looked at.
const Script& Count() {
  static const Script script = Make("count", {kCommon, kNotes, R"lua(
local meta, store, job, next, prepare, dead, ended, id, note, count, event, chore = unpack(KEYS)
local slot, channel, group = ARGV[2], ARGV[3], ARGV[4]
)lua",
                                              kLookUp, kMoved, R"lua(
local results = {}
local function counted(m, name, by)
  local state = state_of(m, call('HGET', note, m))
  if state > 1 then return 4, 0 end
  local left, due = num(call('ZSCORE', count, m) or 0), call('ZSCORE', store, m)
  if state == 1 or left <= 0 or (due and num(due) <= now) then return 3, 0 end
  if call('ZADD', event, 'NX', 0, m .. name) == 0 then return 2, left end
  left = math.max(left - by, 0)
  if left > 0 then
    call('ZADD', count, left, m)
    return 0, left
  end
  uncount(count, event, m, chore, slot)
  call('HSET', job, m, with_due(record_of(job, m), now))
  call('ZADD', store, now, m)
  return 1, 0
end
for i = 5, #ARGV, 4 do
  if enough() then break end
  local m = found(ARGV[i], ARGV[i + 1])
  local outcome, left = 5, 0
  if m then outcome, left = counted(m, ARGV[i + 2], num(ARGV[i + 3])) end
  results[#results + 1] = outcome
  results[#results + 1] = left
end
return {now, results, moved(), figures(meta, store, prepare, dead, ended, job)}
)lua"});
  return script;
}

// For each reference that was looked at: member, record, note, state, due (0: never), lease end, events left. An empty
// member: not stored.
const Script& Find() {
  static const Script script = Make("find", {kCommon, kNotes, R"lua(
local store, job, prepare, dead, ended, id, note, count = unpack(KEYS)
)lua",
                                             kLookUp, R"lua(
local out = {}
local function put(...)
  for _, value in ipairs({...}) do out[#out + 1] = value end
end
for i = 2, #ARGV, 2 do
  if enough() then break end
  local m = found(ARGV[i], ARGV[i + 1])
  if not m then
    put('', '', '', 0, 0, 0, 0)
  else
    local text, rec, lease = call('HGET', note, m) or '', record_of(job, m), call('ZSCORE', prepare, m)
    put(m, rec, text, state_of(m, text), due_in(m, rec), lease and time_in(lease) or 0,
      math.max(num(call('ZSCORE', count, m) or 0), 0))
  end
end
return {now, out}
)lua"});
  return script;
}

// Kinds as in SweepKind. `began` bounds it: a redrive to the dead jobs that there were, the others to the jobs with a
// sequence number up to it. Those go through the zsets with ZSCAN, which meets every member that is there all the time,
// however its score and others' change: `part` is the zset and `scan` ZSCAN's cursor.
const Script& Sweep() {
  static const Script script = Make("sweep", {kCommon, kNotes, R"lua(
local meta, store, job, next, prepare, dead, ended, id, note, count, event, chore = unpack(KEYS)
local slot, channel, group = ARGV[2], ARGV[3], ARGV[4]
local kind, limit, began, part, scan = ARGV[5], num(ARGV[6]), num(ARGV[7]), num(ARGV[8]), ARGV[9]
began = began or (kind == '0' and call('ZCARD', dead)) or num(call('HGET', meta, 'seq') or 0)
)lua",
                                              kMoved, R"lua(
although_full()
local changed, purged, bytes, looked, more = 0, 0, 0, 0, 0
local function full() return changed >= limit or enough() end
local function erase(m)
  local rec = record_of(job, m)
  local retained = call('ZREM', ended, m) == 1
  if rec then
    local own = id_of(rec)
    if own ~= '' then call('HDEL', id, own) end
    if not retained then bytes, purged = bytes + size_of(rec), purged + 1 end
  end
  call('ZREM', store, m)
  call('ZREM', prepare, m)
  call('ZREM', dead, m)
  uncount(count, event, m, chore, slot)
  call('HDEL', job, m)
  call('HDEL', note, m)
  changed = changed + 1
end
-- Whether all of the page was looked at. A member may be in it twice; one of `count` below 0 does not wait any more.
local function erase_page(key, page)
  for i = 1, #page, 2 do
    local m, score = page[i], call('ZSCORE', key, page[i])
    looked = looked + 1
    if score and num(score) >= 0 and upack('>I7', m) <= began then
      if full() then return false end
      erase(m)
    end
  end
  return true
end
if kind == '0' then
  for _, m in ipairs(call('ZRANGE', dead, 0, math.min(limit, began) - 1)) do
    if enough() then break end
    local n = read_note(call('HGET', note, m))
    n.tries = 0
    call('HSET', note, m, note_text(n))
    call('HSET', job, m, with_due(record_of(job, m), now))
    call('ZREM', dead, m)
    call('ZADD', store, now, m)
    changed = changed + 1
  end
  add(meta, 'red', changed)
  began = began - changed
  if began > 0 and changed > 0 then more = 1 end
else
  local sets = kind == '1' and {dead} or kind == '2' and {dead, store, count} or {dead, store, count, prepare, ended}
  while part < #sets and looked < limit and not full() do
    local page = call('ZSCAN', sets[part + 1], scan, 'COUNT', limit)
    if not erase_page(sets[part + 1], page[2]) then break end
    scan = page[1]
    if scan == '0' then part = part + 1 end
  end
  if part < #sets then more = 1 end
  add(meta, 'bytes', -bytes)
  add(meta, 'pur', purged)
end
return {now, changed, began, part, scan, more, moved(), figures(meta, store, prepare, dead, ended, job)}
)lua"});
  return script;
}

// What a group has to do now: slots with jobs to claim, slots with chores, and when there is more. For every node.
// Where there are more than `most` with jobs, the last one and its score say from where the next scan goes on; that one
// has no chores.
const Script& Scan() {
  static const Script script = Make("scan", {kCommon, R"lua(
local next, chore, owner = unpack(KEYS)
local most, last, score = num(ARGV[2]), ARGV[3], ARGV[4]
local from, chores = 0, {}
if last == '' then
  chores = call('ZRANGEBYSCORE', chore, '-inf', now, 'LIMIT', 0, most)
else
  local rank = call('ZSCORE', next, last) == score and call('ZRANK', next, last)
  from = rank and rank + 1 or call('ZCOUNT', next, '-inf', '(' .. score)
end
local due = call('ZRANGEBYSCORE', next, '-inf', now, 'LIMIT', from, most)
return {now, due, first_after(next, now) or -1, chores, first_after(chore, now) or -1,
  num(call('HGET', owner, 'epoch') or 0), call('HGET', owner, 'node') or '', call('ZCARD', next),
  #due == most and call('ZSCORE', next, due[most]) or ''}
)lua"});
  return script;
}

// A new owner: whatever the old one still sends with its epoch is refused from here on.
const Script& Take() {
  static const Script script = Make("take", {R"lua(
redis.call('HDEL', KEYS[1], '')  -- what comes after it Redis does not refuse at maxmemory
redis.call('HSET', KEYS[1], 'node', ARGV[1])
return redis.call('HINCRBY', KEYS[1], 'epoch', 1)
)lua"});
  return script;
}

const Script& Figures() {
  static const Script script = Make("figures", {kCommon, R"lua(
local meta, store, job, prepare, dead, ended = unpack(KEYS)
return {now, figures(meta, store, prepare, dead, ended, job)}
)lua"});
  return script;
}

namespace {

// Of the topics, as the hash of them has them: settings (record.h), the last 8 bytes the birth. Every change gets a
// number above all before it: time is in it, so that one which a failover has lost does not come again.
constexpr const char* kTopics = R"lua(
local call, sub = redis.call, string.sub
local topics, version, channel, name = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local old = call('HGET', topics, name)
local function changed()
  local t = call('TIME')
  local stamp = math.max(t[1] * 1000000 + t[2], (call('GET', version) or 0) + 1)
  call('SET', version, string.format('%.0f', stamp))
  call('PUBLISH', channel, 'topics')
  return stamp
end
)lua";

// UNLINK frees in the background: no time is spent on the number of jobs here.
constexpr const char* kWipe = R"lua(
local function wipe(slot)
  redis.call('ZREM', KEYS[1], slot)
  redis.call('ZREM', KEYS[2], slot)
  for i = 3, #KEYS do redis.call('UNLINK', KEYS[i]) end
end
)lua";

}  // namespace

// Compare and set: an older version, another content of the same one, or a change of a topic that was dropped and made
// again meanwhile alters nothing. Answers what is stored. A topic that is not there is born.
const Script& PutTopic() {
  static const Script script = Make("put_topic", {kTopics, R"lua(
local text, birth = ARGV[3], ARGV[4]
if old and sub(old, 1, -9) == text then return {1, old} end
if old and (sub(old, -8) ~= birth or sub(old, 9, 16) ~= sub(text, 9, 16)
    or struct.unpack('>I8', old) >= struct.unpack('>I8', text)) then
  return {0, old}
end
local stamp = changed()
local stored = text .. (old and birth or struct.pack('>I8', stamp))
call('HSET', topics, name, stored)
return {1, stored}
)lua"});
  return script;
}

// Answers 0 and what is stored where the topic was made again meanwhile.
const Script& DropTopic() {
  static const Script script = Make("drop_topic", {kTopics, R"lua(
if old and sub(old, -8) ~= ARGV[3] then return {0, old} end
if old then
  call('HDEL', topics, name)
  changed()
end
return {1, ''}
)lua"});
  return script;
}

// What an earlier life of the topic has left behind goes; what a later one has stays.
const Script& OpenSlot() {
  static const Script script = Make("open_slot", {kCommon, kWipe, R"lua(
local meta, store, job, prepare, dead, ended = unpack(KEYS, 3)
local slot, birth = ARGV[2], ARGV[3]
local known = call('HMGET', meta, 'birth', 'gone')
if known[1] ~= birth then
  if num(known[1] or 0) > num(birth) or num(known[2] or 0) >= num(birth) then
    return redis.error_reply('ENDED slot ' .. slot .. ' is not of this topic any more')
  end
  wipe(slot)
  call('HSET', meta, 'birth', birth)
end
return {now, figures(meta, store, prepare, dead, ended, job)}
)lua"});
  return script;
}

// For a minute the slot remembers who has gone, so that a late OpenSlot of that life is refused.
const Script& DropSlot() {
  static const Script script = Make("drop_slot", {kWipe, R"lua(
local slot, birth = ARGV[1], ARGV[2]
if tonumber(redis.call('HGET', KEYS[3], 'birth') or 0) > tonumber(birth) then return 0 end
wipe(slot)
redis.call('HSET', KEYS[3], 'gone', birth)
redis.call('EXPIRE', KEYS[3], 60)
return 1
)lua"});
  return script;
}

}  // namespace tocsin::redis::scripts
