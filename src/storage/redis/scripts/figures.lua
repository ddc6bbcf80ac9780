--@include common
local meta, store, job, prepare, dead, ended = unpack(KEYS)
return {now, figures(meta, store, prepare, dead, ended, job)}
