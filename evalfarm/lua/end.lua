-- ARGV: index, attempt, verdict, row, final (1 or 0), backoff in ms, most attempts. Returns how it ended.
local index, attempt, verdict, row = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local id = index .. ':' .. attempt
if not exists() then
  return 'superseded' -- a deleted run stays deleted
end
local winner = get_byte(win, index)
local answered = winner == attempt and 'counted' or redis.call('HGET', past, id)
if answered then
  return answered -- this very call, replayed
end
local function end_as(ending, with_row)
  redis.call('HSET', past, id, ending)
  log(ending, index, attempt, with_row)
  return ending
end
-- Strict fencing: were the first to finish to count, slow outcomes would be counted too rarely.
if winner ~= 0 then
  count('late')
  return end_as('late')
end
if get_byte(att, index) ~= attempt then
  count('superseded')
  return end_as('superseded')
end
if verdict ~= 'infra_failed' then
  close(index, attempt, verdict)
  log('counted', index, attempt, row)
  return 'counted'
end
if redis.call('HEXISTS', own, index) == 0 then
  return 'retry' -- the reaper came first and logged it as lost: the trial waits already
end
if ARGV[5] == '1' or out_of_attempts(attempt, ARGV[7]) then
  close(index, INFRA_FAILED, verdict)
  return end_as('infra_failed', row)
end
release(index)
redis.call('ZADD', rq, now + ARGV[6], index)
return end_as('retry')
