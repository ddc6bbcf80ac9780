-- A job by its member or its own id, and the state that it is in. After the locals of the keys.
local function found(m, own)
  if m ~= '' and call('HEXISTS', job, m) == 1 then return m end
  return own ~= '' and call('HGET', id, own) or nil
end
local function state_of(m, text)
  if call('ZSCORE', prepare, m) then return STATE_LEASED end
  if call('ZSCORE', dead, m) then return STATE_DEAD end
  if not call('ZSCORE', ended, m) then return STATE_SCHEDULED end
  return upack(NOTE_FLAGS_FORMAT, text, NOTE_FLAGS_AT) % NOTE_EITHER == NOTE_DONE and STATE_DONE or STATE_CANCELLED
end
