-- ARGV: how many at most, ms beyond their deadline. What was handed out and never claimed waits to be handed out
-- again; no attempt is spent. Returns how many.
local unclaimed = redis.call('ZRANGEBYSCORE', sent, '-inf', now - ARGV[2], 'LIMIT', 0, ARGV[1])
for _, index in ipairs(unclaimed) do
  redis.call('ZREM', sent, index)
  redis.call('ZADD', rq, now, index)
  count('redispatched')
end
return #unclaimed
