-- At the home: what a slot has been found to hold. With a serial it takes back what is unused, unless the slot was
-- granted more since; without one it registers the slot.
local room, num = KEYS[1], tonumber
local era, slot, jobs, bytes, serial = num(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], num(ARGV[5])
if num(redis.call('HGET', room, 'era') or -1) ~= era then return 0 end
local known = redis.call('HGET', room, 's' .. slot)
if serial then
  if not known or num(known) ~= serial then return 0 end
elseif known then
  return 0
end
redis.call('HSET', room, 'j' .. slot, jobs, 'b' .. slot, bytes, 's' .. slot, serial or 0)
return 1
