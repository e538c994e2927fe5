-- A request of a model is let through, at the latest after a wait: GCRA, once for requests and once for tokens.
-- KEYS: the model's control. ARGV: ms for each request, ms of requests that may be early, the same for tokens,
-- tokens of this request, longest wait in ms. Zero ms: no such limit.
-- Returns ms to wait; 0 or more: the place is taken; less: no place within the longest wait, which nobody took.
-- Replayed, it takes a second place: asked a little later than could have been, never a little too often.
local ctl = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local known = redis.call('HMGET', ctl, 'paused', 'requests', 'tokens')
local paused = tonumber(known[1] or 0)
local wait = math.max(0, paused - now)

local function theoretical(at, step, early)
  local arrival = math.max(tonumber(at or 0), now, paused) -- or all that came in a pause would go out at its end
  if step > 0 then
    wait = math.max(wait, arrival - early - now)
  end
  return arrival
end
local request_ms, token_ms = tonumber(ARGV[1]), tonumber(ARGV[3])
local requests = theoretical(known[2], request_ms, tonumber(ARGV[2]))
local tokens = theoretical(known[3], token_ms, tonumber(ARGV[4]))
if wait > tonumber(ARGV[6]) then
  return -math.ceil(wait)
end
local function put(name, at, step)
  if step > 0 then -- %.3f: Lua alone would round a time in ms to fourteen digits
    redis.call('HSET', ctl, name, string.format('%.3f', at + step))
  end
end
put('requests', requests, request_ms)
put('tokens', tokens, token_ms * ARGV[5])
redis.call('PEXPIRE', ctl, 86400000)
return math.ceil(wait)
