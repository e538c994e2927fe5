-- ARGV: how many, ms to claim each. Returns indices: due retries first, then fresh trials in order.
-- Replayed, it hands out further trials; the first reply's are redispatched at their deadline.
local taken = {}
if not exists() or cancelled() then
  return taken
end
local want, deadline = tonumber(ARGV[1]), now + ARGV[2]
local function hand_out(index)
  redis.call('ZADD', fl, deadline, index)
  taken[#taken + 1] = tonumber(index)
end
if want > 0 then -- a LIMIT below zero would mean all
  for _, index in ipairs(redis.call('ZRANGEBYSCORE', rq, '-inf', now, 'LIMIT', 0, want)) do
    redis.call('ZREM', rq, index)
    hand_out(index)
  end
end
local size = tonumber(redis.call('HGET', meta, 'size'))
local cursor = tonumber(redis.call('HGET', meta, 'cursor'))
while #taken < want and cursor < size do
  hand_out(cursor)
  cursor = cursor + 1
end
redis.call('HSET', meta, 'cursor', cursor)
return taken
