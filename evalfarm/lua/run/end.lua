-- ARGV: index, attempt, verdict, row, final (1 or 0), backoff in ms, most attempts, arm, cost in micro-USD (empty:
-- not known). Returns how it ended.
local index, attempt, verdict, row, arm = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[8]
local id = index .. ':' .. attempt
if not exists() then
  return sealed() and 'superseded' or 'unknown' -- unknown: Redis has lost the run, and it can be rebuilt
end
local holder = redis.call('HGET', own, index)
local leased = holder and holder:match('^%d+') == ARGV[2]
local winner = 0 -- of a trial that is leased
if not leased then
  recall(index, attempt)
  winner = get_byte(win, index)
  local answered = winner == attempt and 'counted' or redis.call('HGET', past, id)
  if answered == 'lost' then -- it was only out of touch
    redis.call('HDEL', past, id)
    count('returned')
  elseif answered then
    return answered -- this very call, replayed
  end
end

-- What an attempt cost is counted whatever becomes of it, and once: where the lease went before the attempt
-- ended, it may end twice, and nothing else tells.
local function settle(cost)
  if not leased and redis.call('HSETNX', past, id .. ':paid', 1) == 0 then
    return
  end
  local held = held_by(id)
  if not held then
    return spend(arm, cost, 0)
  end
  local amount, cap, model = held[1], held[3], held[4]
  redis.call('HDEL', hold, id)
  add('reserved', -amount)
  leave_place(model, cap, id, verdict ~= 'infra_failed')
  spend(arm, cost, amount)
end
settle(ARGV[9])

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
  close(index, attempt, verdict, arm)
  log('counted', index, attempt, row)
  return 'counted'
end
local reads, told = pcall(cjson.decode, row)
local kind = reads and type(told) == 'table' and type(told.failure_kind) == 'string' and told.failure_kind or 'other'
count_in_arm(arm, 'infra:' .. kind)
if ARGV[5] == '1' or (out_of_attempts(attempt, ARGV[7]) and not cancelled()) then
  close(index, INFRA_FAILED, verdict, arm)
  return end_as('infra_failed', row)
end
if holder then -- else the reaper came first: the trial waits already
  release(index)
  redis.call('ZADD', rq, now + ARGV[6], index)
end
return end_as('retry')
