-- How many jobs are due now, and how many become due in each step; no steps if there are none in all of them. Halves
-- the time again and again, so that steps without jobs cost little, and never takes more than one ZCOUNT for each step.
--@include common
local store = KEYS[1]
local from, step, steps = num(ARGV[2]), num(ARGV[3]), num(ARGV[4])
local jobs = {}
for i = 1, steps do jobs[i] = 0 end

-- From the start of one step to before that of another; without those that are due already.
local function between(first, last)
  local lower, upper = from + first * step, from + last * step
  if upper <= now then return 0 end
  return call('ZCOUNT', store, lower > now and digits(lower) or '(' .. digits(now), '(' .. digits(upper))
end

local function count(first, last, total)
  if total == 0 then return end
  if last - first == 1 then
    jobs[last] = total
    return
  end
  local middle = math.floor((first + last) / 2)
  local lower = between(first, middle)
  count(first, middle, lower)
  count(middle, last, total - lower)
end

local total = between(0, steps)
count(0, steps, total)
return {call('ZCOUNT', store, '-inf', digits(now)), total > 0 and jobs or {}}
