-- For each reference that was looked at: member, record, note, state, due (0: never), when the lease ends, the job died
-- or is forgotten, events left, the entry of its claim. An empty member: not stored.
--@include common
--@include records
local store, job, prepare, dead, ended, id, note, count, claim = unpack(KEYS)
--@include lookup
local out = {}

local function put(...)
  for _, value in ipairs({...}) do out[#out + 1] = value end
end

for i = 2, #ARGV, FIND_ITEM do
  if read_enough() then break end
  local m = found(ARGV[i], ARGV[i + 1])
  if not m then
    put('', '', '', 0, 0, 0, 0, '')
  else
    local text, rec = call('HGET', note, m) or '', record_of(job, m)
    local state, score = state_of(m, text)
    local leased = state == STATE_LEASED
    put(m, rec, text, state, due_in(m, rec), leased and time_in(score) or num(score or 0),
      math.max(num(call('ZSCORE', count, m) or 0), 0), leased and call('HGET', claim, score) or '')
  end
end
return {now, out}
