-- ARGV: item, attempt, cost in micro-USD (empty: not known), ms until another attempt (empty: for none), most attempts,
-- then of each judge its model and that one's cap (0: none).
-- Its cost counts whether or not the attempt is the newest; only the newest decides what becomes of the item.
local item, attempt = ARGV[1], ARGV[2]
local id = item .. ':' .. attempt
if redis.call('HEXISTS', judges, 'items') == 0 then
  return 0 -- a judging that is over stays so
end
if redis.call('HSETNX', judges, 'ended:' .. id, 1) == 0 then
  return 0 -- this very call, replayed
end
for at = 6, #ARGV, 2 do
  leave_place(ARGV[at], tonumber(ARGV[at + 1]), 'judging:' .. id, ARGV[4] == '')
end
local amount = tonumber(redis.call('HGET', judges, 'claimed:' .. id) or 0)
add_judging('reserved', -amount)
pay(ARGV[3], amount)
if redis.call('HGET', work, item) == attempt then
  redis.call('HDEL', work, item)
end
if redis.call('HGET', judges, 'attempt:' .. item) ~= attempt then
  return 0
end
if ARGV[4] == '' or tonumber(attempt) >= tonumber(ARGV[5]) then
  redis.call('ZREM', due, item)
else
  redis.call('ZADD', due, now + ARGV[4], item)
end
return 1
