-- Answers 0 and what is stored if the topic was created again meanwhile.
--@include topics
if old and birth_of(old) ~= ARGV[3] then return {0, old} end
if old then
  call('HDEL', topics, name)
  changed()
end
return {1, ''}
