-- A slot takes jobs only in the life of the topic that has opened it (open_slot): a node that has not heard of a drop
-- would add jobs that nobody looks at any more. ARGV[5] is the topic's birth.
local known_birth, known_sequence, known_longest = unpack(call('HMGET', KEYS[1], 'birth', 'seq', 'longest'))
if known_birth ~= ARGV[5] then return redis.error_reply(ERROR_GONE .. ARGV[2]) end
