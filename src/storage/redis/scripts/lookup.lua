-- A job by its member or its own id, and the state that it is in, with its score there. After the locals of the keys.
local function found(m, own)
  if m ~= '' and call('HEXISTS', job, m) == 1 then return m end
  local held = own ~= '' and call('HGET', id, own)
  -- An id whose job is lost belongs to nobody.
  return held and call('HEXISTS', job, held) == 1 and held or nil
end
local function state_of(m, text)
  local score = call('ZSCORE', prepare, m)
  if score then return STATE_LEASED, score end
  score = call('ZSCORE', dead, m)
  if score then return STATE_DEAD, score end
  score = call('ZSCORE', ended, m)
  if not score then return STATE_SCHEDULED end
  local done = not text or text == '' or upack(NOTE_FLAGS_FORMAT, text, NOTE_FLAGS_AT) % NOTE_EITHER == NOTE_DONE
  return done and STATE_DONE or STATE_CANCELLED, score
end
