-- Answers 0 and what is stored if the topic was created again meanwhile. The proof of the drop outlives it: nodes and
-- slots that have not heard of it must not put the topic back. They are told also if Redis had lost the topic.
--@include topics
local birth = number(ARGV[3])
if old and birth_of(old) > birth then return {0, old} end
call('HDEL', topics, name)
call('SET', proof, digits(math.max(dropped, birth)), 'EX', DROP_PROOF_SECONDS)
if old or birth > dropped then changed() end
return {1, ''}
