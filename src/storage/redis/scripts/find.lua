-- For each reference that was looked at: member, record, note, state, due (0: never), lease end, events left. An empty
-- member: not stored.
--@include common
--@include records
local store, job, prepare, dead, ended, id, note, count = unpack(KEYS)
--@include lookup
local out = {}

local function put(...)
  for _, value in ipairs({...}) do out[#out + 1] = value end
end

for i = 2, #ARGV, FIND_ITEM do
  if read_enough() then break end
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
