-- KEYS: due, meta. ARGV: item, attempt, cost in US dollars or '', ms until another attempt or '' for none, most attempts.
-- Its cost counts whether or not the attempt is the newest; only the newest decides what becomes of the item.
local item, attempt = ARGV[1], ARGV[2]
if redis.call('HEXISTS', KEYS[2], 'items') == 0 then
  return 0 -- a judging that is over stays so
end
if redis.call('HSETNX', KEYS[2], 'ended:' .. item .. ':' .. attempt, 1) == 0 then
  return 0 -- this very call, replayed
end
if ARGV[3] == '' then
  redis.call('HINCRBY', KEYS[2], 'unpriced', 1)
else
  redis.call('HINCRBYFLOAT', KEYS[2], 'cost', ARGV[3])
end
if redis.call('HGET', KEYS[2], 'attempt:' .. item) ~= attempt then
  return 0
end
if ARGV[4] == '' or tonumber(attempt) >= tonumber(ARGV[5]) then
  redis.call('ZREM', KEYS[1], item)
else
  local time = redis.call('TIME')
  redis.call('ZADD', KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[4], item)
end
return 1
