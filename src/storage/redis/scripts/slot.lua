-- The keys and first arguments of a script over one slot, and the slot's place in the index of its group. After common.
local meta, store, job, next, prepare, dead, ended, id, note, count, event, chore, claim = unpack(KEYS)
local slot, channel, group = ARGV[2], ARGV[3], ARGV[4]
local old_head = num(call('ZSCORE', next, slot) or math.huge)

-- The slot's first job may have changed: updates the index and tells the group's owner. Answers when it is due; -1:
-- never.
local function update_head()
  local least = head(store)
  if not least then
    call('ZREM', next, slot)
    return -1
  end
  local tell = wakes(next, least, old_head)
  if least ~= old_head then call('ZADD', next, least, slot) end
  if tell then publish(channel, group .. ' ' .. least) end
  return least
end
