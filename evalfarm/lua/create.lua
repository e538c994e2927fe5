-- ARGV: size, plan's digest, run. KEYS[10]: the open runs.
-- 1: created; 0: this plan's state is there; -1: another plan's is.
local plan = redis.call('HGET', meta, 'plan')
if plan then
  return plan == ARGV[2] and 0 or -1
end
redis.call('HSET', meta, 'plan', ARGV[2], 'size', ARGV[1], 'cursor', 0)
set_byte(win, ARGV[1] - 1, 0) -- allocates the whole string at its exact size
set_byte(att, ARGV[1] - 1, 0)
redis.call('SADD', KEYS[10], ARGV[3])
return 1
