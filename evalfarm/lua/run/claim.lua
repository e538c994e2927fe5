-- ARGV: index, token, lease in ms, arm, model (empty: none), its cap (0: none). Returns {status, attempt}.
local index, token = ARGV[1], ARGV[2]
local arm, model, cap = ARGV[4], ARGV[5], tonumber(ARGV[6])
if tonumber(index) < 0 or tonumber(index) >= tonumber(size or 0) then
  return { 'closed', 0 } -- a message for a run that is gone, or for no trial of its plan
end
if cancelled() then
  return { get_byte(win, index) == 0 and 'cancelled' or 'closed', 0 }
end
local holder = redis.call('HGET', own, index)
if holder then
  local attempt, owner = holder:match('^(%d+):(.*)$')
  return { owner == token and 'ok' or 'held', tonumber(attempt) } -- 'ok': this very call, replayed
end
if redis.call('ZREM', sent, index) == 0 then
  -- Held: it waits for its next hand-out, and this message is an old one.
  return { get_byte(win, index) == 0 and 'held' or 'closed', 0 }
end

-- Not now, and no attempt is spent.
local function defer(ms)
  redis.call('ZADD', rq, now + ms, index)
  count('deferred')
  return { 'deferred', 0 }
end
local wait = model_wait_ms(model, cap)
if wait > 0 then
  return defer(wait)
end
-- What judging may cost of the answers that there are, of those at work and of this one: judges are asked at the end,
-- and without it nothing would be left for them.
local function for_judges()
  local each = tonumber(redis.call('HGET', meta, 'judging:trial') or 0)
  if each == 0 then
    return 0
  end
  local trials = redis.call('HLEN', own) + 1
  local counts = redis.call('HGETALL', cnt)
  for at = 1, #counts, 2 do
    local what = counts[at]:match('|(%l+)$')
    if what == 'passed' or what == 'failed' or what == 'inconclusive' then
      trials = trials + counts[at + 1]
    end
  end
  return trials * each
end
local amount = 0
if budget then
  local spent, reserved, most = unpack(redis.call('HMGET', cnt, 'cost', 'reserved', 'most:' .. arm))
  amount = tonumber(most or redis.call('HGET', meta, 'guess:' .. arm) or 0)
  if tonumber(spent or 0) + tonumber(reserved or 0) + amount + for_judges() > tonumber(budget) then
    if redis.call('HLEN', own) > 0 then
      return defer(BUSY_MS) -- what is at work may end cheaper than was reserved for it
    end
    redis.call('ZADD', rq, now, index)
    stop('exhausted')
    return { 'cancelled', 0 }
  end
end

local attempt = redis.call('BITFIELD', att, 'INCRBY', 'u8', '#' .. index, 1)[1]
local id = index .. ':' .. attempt
take_place(model, cap, id, ARGV[3])
if budget or cap > 0 then
  redis.call('HSET', hold, id, string.format('%.0f:%s:%d:%s', amount, arm, cap, model))
  add('reserved', amount)
end
redis.call('HSET', own, index, attempt .. ':' .. token)
redis.call('ZADD', fl, now + ARGV[3], index)
count('attempts')
return { 'ok', attempt }
