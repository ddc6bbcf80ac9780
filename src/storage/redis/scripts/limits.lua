-- What the slot may hold: the topic's own capacity or, given an era, the slot's allowance, which counts only from that
-- era on. After common.
local function limits(meta, max_jobs, max_bytes, era, live, bytes)
  max_jobs, max_bytes, era = num(max_jobs), num(max_bytes), num(era)
  if era then
    local known_era, jobs_max, bytes_max = unpack(call('HMGET', meta, 'era', 'jobs_max', 'bytes_max'))
    local counts = known_era and num(known_era) >= era
    max_jobs = max_jobs and (counts and num(jobs_max) or live)
    max_bytes = max_bytes and (counts and num(bytes_max) or bytes)
  end
  return max_jobs, max_bytes
end
