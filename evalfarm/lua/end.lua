-- ARGV: index, attempt, verdict, row, final (1 or 0), backoff in ms, most attempts.
local index, attempt, verdict, row = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
if not exists() then
  return 'superseded' -- a deleted run stays deleted
end
local winner = get_byte(win, index)
local newest = get_byte(att, index) == attempt
if winner == attempt then
  return 'counted' -- this very call, replayed
end
if winner == INFRA_FAILED and newest and verdict == 'infra_failed' then
  return 'infra_failed' -- this very call replayed, or the reaper came first to the same end
end
-- Strict fencing: were the first to finish to count, slow outcomes would be counted too rarely.
if winner ~= 0 or not newest then
  local ending = winner ~= 0 and 'late' or 'superseded'
  local id = index .. ':' .. attempt
  if redis.call('HSETNX', past, id, ending) == 0 then
    return redis.call('HGET', past, id)
  end
  count(ending)
  log(ending, index, attempt)
  return ending
end
if verdict ~= 'infra_failed' then
  close(index, attempt, verdict)
  log('counted', index, attempt, row)
  return 'counted'
end
if redis.call('HEXISTS', own, index) == 0 then
  return 'retry' -- this very call replayed, or the reaper came first: it waits already
end
if ARGV[5] == '1' or out_of_attempts(attempt, ARGV[7]) then
  close(index, INFRA_FAILED, verdict)
  log('infra_failed', index, attempt, row)
  return 'infra_failed'
end
release(index)
redis.call('ZADD', rq, now + ARGV[6], index)
log('retry', index, attempt)
return 'retry'
