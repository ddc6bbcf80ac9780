-- What a group has to do now: slots with jobs to claim, each with the due time of its first job, slots with chores, and
-- when there is more; and how many topics it keeps. A scan may carry the beat of the node that sends it. If more than
-- `most` slots have jobs, the last one and its score say where the next scan goes on; that one has no chores.
--@include common
local next, chore, owner, topics = unpack(KEYS)
local most, last, score = num(ARGV[2]), ARGV[3], ARGV[4]
local from, chores = 0, {}
if last == '' then
  chores = call('ZRANGEBYSCORE', chore, '-inf', now, 'LIMIT', 0, most)
else
  local rank = call('ZSCORE', next, last) == score and call('ZRANK', next, last)
  from = rank and rank + 1 or call('ZCOUNT', next, '-inf', '(' .. score)
end
local found, due = call('ZRANGEBYSCORE', next, '-inf', now, 'WITHSCORES', 'LIMIT', from, most), {}
for i = 1, #found, 2 do due[#due + 1] = found[i] end
if ARGV[5] then publish(ARGV[5], ARGV[6]) end
return {now, found, first_after(next, now) or -1, chores, first_after(chore, now) or -1,
  num(call('HGET', owner, 'epoch') or 0), call('HGET', owner, 'node') or '', call('ZCARD', next),
  #due == most and call('ZSCORE', next, due[most]) or '', call('HLEN', topics)}
