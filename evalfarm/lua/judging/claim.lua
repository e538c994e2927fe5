-- ARGV: item, attempt, ms to hold it, then of each judge its model and that one's cap (0: none).
-- 1: begun; 0: not to be. One that a model or the money has no room for waits, and its attempt is not begun.
local item, attempt, hold_ms = ARGV[1], ARGV[2], ARGV[3]
local id = item .. ':' .. attempt
if redis.call('HGET', judges, 'attempt:' .. item) ~= attempt or redis.call('HEXISTS', judges, 'claimed:' .. id) == 1 then
  return 0
end
redis.call('HDEL', judges, 'sent:' .. item)
local wait = 0
for at = 4, #ARGV, 2 do
  wait = math.max(wait, model_wait_ms(ARGV[at], tonumber(ARGV[at + 1])))
end
if wait > 0 then
  redis.call('ZADD', due, now + wait, item)
  return 0
end
local known = redis.call('HMGET', judges, 'cost', 'reserved', 'dearest', 'most')
local taken = tonumber(known[1] or 0) + tonumber(known[2] or 0)
local amount = tonumber(known[3] or redis.call('HGET', meta, 'judging') or 0)
local spent, set_aside = unpack(redis.call('HMGET', cnt, 'cost', 'reserved'))
local of_run = tonumber(spent or 0) + tonumber(set_aside or 0) + taken + amount
local why = budget and of_run > tonumber(budget) and 'run' or known[4] and taken + amount > tonumber(known[4]) and 'judges'
if why then
  if redis.call('HLEN', work) > 0 then
    redis.call('ZADD', due, now + BUSY_MS, item) -- what is at work may end cheaper than was set aside for it
  else
    redis.call('HSET', judges, 'spent', why)
    redis.call('ZREM', due, item)
  end
  return 0
end
for at = 4, #ARGV, 2 do
  take_place(ARGV[at], tonumber(ARGV[at + 1]), 'judging:' .. id, hold_ms)
end
redis.call('HSET', judges, 'claimed:' .. id, amount)
add_judging('reserved', amount)
redis.call('HSET', work, item, attempt)
redis.call('ZADD', due, now + hold_ms, item)
return 1
