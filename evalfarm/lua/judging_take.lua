-- KEYS: due, meta. ARGV: at most so many at work, ms to hold each, most attempts.
-- Returns item, attempt, item, attempt, … An item whose last attempt was lost is dropped: nothing more comes of it.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) -- ms; the server's, so no worker's clock matters
local room = ARGV[1] - redis.call('ZCOUNT', KEYS[1], '(' .. now, '+inf')
local taken = {}
if room <= 0 then -- a LIMIT below zero would mean all
  return taken
end
for _, item in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, room)) do
  if tonumber(redis.call('HGET', KEYS[2], 'attempt:' .. item) or 0) >= tonumber(ARGV[3]) then
    redis.call('ZREM', KEYS[1], item)
  else
    redis.call('ZADD', KEYS[1], now + ARGV[2], item)
    taken[#taken + 1] = tonumber(item)
    taken[#taken + 1] = redis.call('HINCRBY', KEYS[2], 'attempt:' .. item, 1)
  end
end
return taken
