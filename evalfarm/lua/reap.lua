-- ARGV: how many at most, most attempts, backoff in ms. Returns {lost, redispatched, closed}.
local lost, redispatched, closed = 0, 0, 0
for _, index in ipairs(redis.call('ZRANGEBYSCORE', fl, '-inf', now, 'LIMIT', 0, ARGV[1])) do
  local attempt = get_byte(att, index)
  if release(index) == 0 then -- its message got lost before anyone claimed it: no attempt is spent
    redispatched = redispatched + 1
    count('redispatched')
    redis.call('ZADD', rq, now, index)
  else
    lost = lost + 1
    count('lost')
    log('lost', index, attempt)
    if out_of_attempts(attempt, ARGV[2]) then
      closed = closed + 1
      close(index, INFRA_FAILED, 'infra_failed')
      log('infra_failed', index, attempt) -- no row: nobody is left to write one
    else
      redis.call('ZADD', rq, now + ARGV[3], index)
    end
  end
end
return { lost, redispatched, closed }
