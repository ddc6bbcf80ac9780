-- Jobs without own ids and counts on a topic without capacity: what most are, and the fastest way for them. They come
-- in runs of one due time: it, how many, and their records. Records are stored as they come, unless the due time in them
-- is not the one that counts: it has passed, or the sequence numbers do not tell when the job was accepted.
--@include common
--@include life
local meta, store, job, next, prepare, dead, ended = unpack(KEYS)
local slot, channel, group, n = ARGV[2], ARGV[3], ARGV[4], num(ARGV[6])
local first = next_sequence(known_sequence)
call('HSET', meta, 'seq', first + n - 1)
local fields, scores, bytes, longest, least, at, i = {}, {}, -RECORD_HEAD * n, 0, math.huge, 0, 7
local args, seq, timely = ARGV, first, time_in(first) == now and time_in(first + n - 1) == now
while ARGV[i] do
  local asked, due, last = num(ARGV[i]), moment_of(ARGV[i]), i + 1 + ARGV[i + 1]
  local as_asked, score = due == asked or (asked < ABSOLUTE_MIN and timely), digits(due)
  if due < least then least = due end
  for k = i + 2, last do
    local m, rec = pack(MEMBER_FORMAT, seq), args[k]
    seq = seq + 1
    if not as_asked then rec = pack(DUE_FORMAT, due) .. sub(rec, DUE_BYTES + 1) end
    fields[at + 1], fields[at + 2], scores[at + 1], scores[at + 2] = m, rec, score, m
    bytes, at = bytes + #rec, at + 2
    if #rec > longest then longest = #rec end
  end
  i = last + 1
end
in_chunks('HSET', job, fields)
in_chunks('ZADD', store, scores)
add(meta, 'bytes', bytes)
add(meta, 'acc', n)
local old = num(call('ZSCORE', next, slot) or math.huge)
if least < old then
  local tell = wakes(next, least, old)
  call('ZADD', next, least, slot)
  if tell then publish(channel, group .. ' ' .. least) end
end
local held = figures(meta, store, prepare, dead, ended, job)
note_length(meta, known_longest, longest, held[1] == n)
return {now, first, math.min(least, old), held}
