-- Precedes the scripts that start or end what asks a model: how long to wait for a place, to take one, to leave it.
local BUSY_MS = 500 -- until something ends that takes up the room; a pause says itself how long it lasts
local BACKLOG_MS = 30000 -- requests that were let through for later; with more of them, whoever starts only waits
local SUCCESSES = 20 -- attempts that end well, one after another, for each step back to the configured cap

-- Not now: nobody waits in a worker's slot for what a model allows. cap: 0 for none.
local function model_wait_ms(model, cap)
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

-- Whose a place is.
local function holder_of(id)
  return PREFIX:match('{(.*)}') .. '/' .. id
end

local function take_place(model, cap, id, hold_ms)
  if cap > 0 then
    local sem = model_key(model, 'sem')
    redis.call('ZADD', sem, now + hold_ms, holder_of(id))
    redis.call('PEXPIRE', sem, 86400000)
  end
end

local function recover(model, cap)
  local ctl = model_key(model, 'ctl')
  local lowered = redis.call('HGET', ctl, 'cap')
  if not lowered or redis.call('HINCRBY', ctl, 'streak', 1) < SUCCESSES then
    return
  end
  redis.call('HSET', ctl, 'streak', 0)
  if tonumber(lowered) + 1 >= cap then
    redis.call('HDEL', ctl, 'cap')
  else
    redis.call('HINCRBY', ctl, 'cap', 1)
  end
end

local function leave_place(model, cap, id, well)
  if cap > 0 then
    redis.call('ZREM', model_key(model, 'sem'), holder_of(id))
    if well then
      recover(model, cap)
    end
  end
end
