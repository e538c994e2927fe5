-- ARGV: at most so many at work, ms until a message that nobody claimed is sent again, most attempts, ms after which
-- one is sent again by now.
-- Returns item, attempt, item, attempt, … One that was never claimed goes out under its old number: nothing was begun.
-- An item whose last attempt was lost is dropped: nothing more comes of it.
local taken = {}
for _, item in ipairs(redis.call('ZRANGEBYSCORE', due, '(' .. now, '+inf')) do
  local sent_at = redis.call('HGET', judges, 'sent:' .. item)
  if sent_at and now - sent_at >= tonumber(ARGV[4]) then
    redis.call('ZADD', due, now, item)
  end
end
local room = ARGV[1] - redis.call('ZCOUNT', due, '(' .. now, '+inf')
if redis.call('HEXISTS', judges, 'spent') == 1 then
  redis.call('ZREMRANGEBYSCORE', due, '-inf', now)
elseif room > 0 then -- a LIMIT below zero would mean all
  for _, item in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, room)) do
    local attempt = tonumber(redis.call('HGET', judges, 'attempt:' .. item) or 0)
    local begun = attempt == 0 or redis.call('HEXISTS', judges, 'claimed:' .. item .. ':' .. attempt) == 1
    redis.call('HDEL', work, item)
    if begun and attempt >= tonumber(ARGV[3]) then
      redis.call('ZREM', due, item)
    else
      if begun then
        attempt = redis.call('HINCRBY', judges, 'attempt:' .. item, 1)
      end
      redis.call('ZADD', due, now + ARGV[2], item)
      redis.call('HSET', judges, 'sent:' .. item, now)
      taken[#taken + 1] = tonumber(item)
      taken[#taken + 1] = attempt
    end
  end
end
return taken
