-- Precedes every script: the keys by name, the server's clock, and what several scripts do.
-- A run's keys have one name but for their end, and are told as one: fourteen would cost a caller a tenth of its rate.
local PREFIX = KEYS[1]
local win, att, fl, own, rq = PREFIX .. 'win', PREFIX .. 'att', PREFIX .. 'fl', PREFIX .. 'own', PREFIX .. 'rq'
local cnt, past, out, meta, hold = PREFIX .. 'cnt', PREFIX .. 'past', PREFIX .. 'out', PREFIX .. 'meta', PREFIX .. 'hold'
local ids, sent, arms, pace = PREFIX .. 'ids', PREFIX .. 'sent', PREFIX .. 'arms', PREFIX .. 'pace'
local INFRA_FAILED = 254  -- in win: closed without a verdict on the plugin
local MOST_ATTEMPTS = 200 -- a byte holds an attempt's number, and 254 is taken

-- As they were when the script began.
local size, was_cancelled, was_sealed, budget =
  unpack(redis.call('HMGET', meta, 'size', 'cancelled', 'sealed', 'budget'), 1, 4)

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) -- ms; the server's, so no worker's clock matters

local function get_byte(key, index)
  return redis.call('GETRANGE', key, index, index):byte() or 0
end

local function set_byte(key, index, value)
  redis.call('SETRANGE', key, index, string.char(value))
end

local function count(name, by)
  redis.call('HINCRBY', cnt, name, by or 1)
end

-- Amounts of money: as a number alone, Lua would write a large one with an exponent.
local function add(name, micro_usd)
  if micro_usd ~= 0 then
    count(name, string.format('%.0f', micro_usd))
  end
end

local function model_key(model, what)
  return 'f:m:' .. model .. ':' .. what
end

-- What is set aside for an attempt: {micro-USD, arm, cap, model}; nil: nothing is.
local function held_by(id)
  local held = redis.call('HGET', hold, id)
  if held then
    local amount, arm, cap, model = held:match('^(%d+):(%d+):(%d+):(.*)$')
    return { tonumber(amount), arm, tonumber(cap), model }
  end
end

-- Repeats are outermost in a plan, so the arms of one repeat say those of all.
local function arm_of(index)
  local places = redis.call('STRLEN', arms) / 2
  return places > 0 and redis.call('BITFIELD', arms, 'GET', 'u16', '#' .. index % places)[1] or 0
end

local function count_in_arm(arm, what)
  count(arm .. '|' .. what)
end

-- What an attempt of an arm cost; empty: not known, and then what was reserved for it stays spent.
local function spend(arm, cost, reserved)
  if cost == '' then
    count('unpriced:' .. arm)
  end
  local micro_usd = tonumber(cost) or reserved
  add('cost', micro_usd)
  add('cost:' .. arm, micro_usd)
  if micro_usd > 0 and micro_usd > tonumber(redis.call('HGET', cnt, 'most:' .. arm) or 0) then
    redis.call('HSET', cnt, 'most:' .. arm, string.format('%.0f', micro_usd))
  end
end

local function log(kind, index, attempt, row)
  if row then
    redis.call('XADD', out, '*', 'k', kind, 'i', index, 'n', attempt, 'r', row)
  else
    redis.call('XADD', out, '*', 'k', kind, 'i', index, 'n', attempt)
  end
end

local function exists()
  return size ~= false
end

local function sealed()
  return was_sealed ~= false
end

local function cancelled()
  return was_cancelled ~= false
end

local function out_of_attempts(attempt, most)
  return attempt >= math.min(tonumber(most), MOST_ATTEMPTS)
end

-- Takes a trial out of flight; true: it was leased, false: at most handed out.
local function release(index)
  local leased = redis.call('HDEL', own, index) == 1
  redis.call('ZREM', leased and fl or sent, index)
  return leased
end

-- An attempt that the ledger has no memory of, because Redis lost it: it was begun, and so were those before it.
local function recall(index, attempt)
  local started = get_byte(att, index)
  if attempt <= started or attempt > MOST_ATTEMPTS then
    return
  end
  set_byte(att, index, attempt)
  count('attempts', attempt - started)
  for between = started + 1, attempt - 1 do
    redis.call('HSET', past, index .. ':' .. between, 'lost')
    count('lost')
  end
end

local function note_pace()
  local slot = math.floor(now / 10000)
  if redis.call('HINCRBY', pace, slot, 1) == 1 then
    for _, old in ipairs(redis.call('HKEYS', pace)) do
      if tonumber(old) < slot - 6 then
        redis.call('HDEL', pace, old)
      end
    end
  end
end

local function close(index, winner, verdict, arm)
  if not release(index) then
    redis.call('ZREM', rq, index)
  end
  set_byte(win, index, winner)
  count_in_arm(arm, verdict)
  note_pace()
end

-- Ends the run with what is at work. What was handed out but not claimed goes back to waiting, so that what is
-- left in flight is at work, and falls to nothing as it ends.
local function stop(why)
  redis.call('HSET', meta, 'cancelled', 1, why, 1)
  for _, index in ipairs(redis.call('ZRANGE', sent, 0, -1)) do
    redis.call('ZADD', rq, now, index)
  end
  redis.call('DEL', sent)
end
