-- ARGV: size, plan's digest, run, queue, trials in a message, arms of one repeat, rebuilding (1 or 0), then
-- what `meta` is told of money, name by name. KEYS[2]: the open runs. 1: created; 0: this plan's state is there; -1: another plan's is.
local plan = redis.call('HGET', meta, 'plan')
if plan then
  return plan == ARGV[2] and 0 or -1
end
redis.call('DEL', win, att, fl, own, rq, cnt, past, out, meta, hold, ids, sent, arms, pace) -- what is left of a sealed run
redis.call('HSET', meta, 'plan', ARGV[2], 'size', ARGV[1], 'cursor', 0, 'queue', ARGV[4], 'together', ARGV[5])
redis.call('HSET', meta, 'created', now, unpack(ARGV, 8))
if ARGV[7] == '1' then
  redis.call('HSET', meta, 'rebuilding', 1)
end
set_byte(win, ARGV[1] - 1, 0) -- allocates the whole string at its exact size
set_byte(att, ARGV[1] - 1, 0)
if ARGV[6] ~= '' then
  redis.call('SET', arms, ARGV[6])
end
redis.call('SADD', KEYS[2], ARGV[3])
return 1
