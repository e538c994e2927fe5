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

-- Not now, and no attempt is spent: nobody waits in a worker's slot for what a model or the budget allows.
local BUSY_MS = 500 -- until a trial ends that takes up the room; a pause says itself how long it lasts
local BACKLOG_MS = 30000 -- requests that were let through for later; with more of them, whoever starts only waits
local function model_wait_ms()
  if model == '' then
    return 0
  end
  local known = redis.call('HMGET', model_key(model, 'ctl'), 'paused', 'cap', 'requests', 'tokens')
  local backlog = math.max(tonumber(known[3] or 0), tonumber(known[4] or 0)) - now - BACKLOG_MS
  local wait = math.ceil(math.max(0, tonumber(known[1] or 0) - now, backlog))
  if wait == 0 and cap > 0 then
    local sem = model_key(model, 'sem')
    redis.call('ZREMRANGEBYSCORE', sem, '-inf', now)
    if redis.call('ZCARD', sem) >= math.min(cap, tonumber(known[2] or cap)) then
      return BUSY_MS
    end
  end
  return wait
end
local function defer(ms)
  redis.call('ZADD', rq, now + ms, index)
  count('deferred')
  return { 'deferred', 0 }
end
local wait = model_wait_ms()
if wait > 0 then
  return defer(wait)
end
local amount = 0
if budget then
  local spent, reserved, most = unpack(redis.call('HMGET', cnt, 'cost', 'reserved', 'most:' .. arm))
  amount = tonumber(most or redis.call('HGET', meta, 'guess:' .. arm) or 0)
  if tonumber(spent or 0) + tonumber(reserved or 0) + amount > tonumber(budget) then
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
if cap > 0 then
  local sem = model_key(model, 'sem')
  redis.call('ZADD', sem, now + ARGV[3], RUN .. '/' .. id)
  redis.call('PEXPIRE', sem, 86400000)
end
if budget or cap > 0 then
  redis.call('HSET', hold, id, string.format('%.0f:%s:%d:%s', amount, arm, cap, model))
  add('reserved', amount)
end
redis.call('HSET', own, index, attempt .. ':' .. token)
redis.call('ZADD', fl, now + ARGV[3], index)
count('attempts')
return { 'ok', attempt }
