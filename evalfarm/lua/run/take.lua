-- ARGV: how many, ms to claim each. Returns indices: due retries first, then fresh trials in order.
-- Replayed, it hands out further trials; the first reply's are redispatched at their deadline.
local MOST_PASSED_OVER = 5000 -- in one call: the server does nothing else meanwhile
local taken = {}
if not exists() or cancelled() or redis.call('HEXISTS', meta, 'rebuilding') == 1 then
  return taken
end
local want, deadline = tonumber(ARGV[1]), now + ARGV[2]
local function hand_out(index)
  redis.call('ZADD', sent, deadline, index)
  taken[#taken + 1] = tonumber(index)
end
if want > 0 then -- a LIMIT below zero would mean all
  for _, index in ipairs(redis.call('ZRANGEBYSCORE', rq, '-inf', now, 'LIMIT', 0, want)) do
    redis.call('ZREM', rq, index)
    hand_out(index)
  end
end
local cursor = tonumber(redis.call('HGET', meta, 'cursor'))
local passed_over = 0
while #taken < want and cursor < tonumber(size) and passed_over < MOST_PASSED_OVER do
  -- After Redis was lost and rebuilt, trials beyond the cursor may be closed, or in some other place again.
  if
    get_byte(win, cursor) == 0
    and redis.call('HEXISTS', own, cursor) == 0
    and not redis.call('ZSCORE', rq, cursor)
    and not redis.call('ZSCORE', sent, cursor)
  then
    hand_out(cursor)
  else
    passed_over = passed_over + 1
  end
  cursor = cursor + 1
end
redis.call('HSET', meta, 'cursor', cursor)
return taken
