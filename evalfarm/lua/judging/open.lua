-- ARGV: how many items, the most that they may cost in micro-USD (empty: whatever the run's budget leaves), then of each
-- attempt that is kept: item, number, cost in micro-USD (empty: not known), 1 where nothing more is to be asked.
-- 1: opened; 0: it was open.
if redis.call('HSETNX', judges, 'items', ARGV[1]) == 0 then
  return 0
end
if ARGV[2] ~= '' then
  redis.call('HSET', judges, 'most', ARGV[2])
end
for item = 0, ARGV[1] - 1 do
  redis.call('ZADD', due, 0, item)
end
for at = 3, #ARGV, 4 do
  local item, attempt = ARGV[at], ARGV[at + 1]
  local known = tonumber(redis.call('HGET', judges, 'attempt:' .. item) or 0)
  redis.call('HSET', judges, 'attempt:' .. item, math.max(known, tonumber(attempt)))
  redis.call('HSET', judges, 'claimed:' .. item .. ':' .. attempt, 0, 'ended:' .. item .. ':' .. attempt, 1)
  pay(ARGV[at + 2], 0)
  if ARGV[at + 3] == '1' then
    redis.call('ZREM', due, item)
  end
end
return 1
