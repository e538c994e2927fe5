-- ARGV: index, attempt, token, lease in ms. 1: renewed; 0: fenced or cancelled.
if cancelled() or redis.call('HGET', own, ARGV[1]) ~= ARGV[2] .. ':' .. ARGV[3] then
  return 0
end
redis.call('ZADD', fl, now + ARGV[4], ARGV[1])
return 1
