-- ARGV: most attempts, backoff in ms, then index, attempt, index, attempt … as overdue.lua gave them.
-- Returns {lost, closed}. What was renewed, ended or reaped meanwhile is left alone.
local lost, closed = 0, 0
for at = 3, #ARGV, 2 do
  local index, attempt = ARGV[at], tonumber(ARGV[at + 1])
  local deadline = redis.call('ZSCORE', fl, index)
  if deadline and tonumber(deadline) <= now and get_byte(att, index) == attempt then
    release(index)
    lost = lost + 1
    count('lost')
    count_in_arm(arm_of(index), 'infra:lost')
    redis.call('HSET', past, index .. ':' .. attempt, 'lost')
    log('lost', index, attempt)
    if out_of_attempts(attempt, ARGV[1]) and not cancelled() then
      closed = closed + 1
      close(index, INFRA_FAILED, 'infra_failed', arm_of(index))
      log('infra_failed', index, attempt) -- no row: nobody is left to write one
    else
      redis.call('ZADD', rq, now + ARGV[2], index)
    end
  end
end
return { lost, closed }
