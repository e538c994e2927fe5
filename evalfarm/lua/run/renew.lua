-- ARGV: index, attempt, token, lease in ms. 1: go on; 0: fenced or cancelled.
local index, attempt = ARGV[1], tonumber(ARGV[2])
if not exists() then
  return sealed() and 0 or 1 -- Redis has lost the run: that is no verdict, and it can be rebuilt
end
if cancelled() then
  return 0
end
local held = redis.call('HGET', own, index)
if held and held ~= ARGV[2] .. ':' .. ARGV[3] then
  return 0
end
if not held then
  -- Its lease ran out, or Redis forgot it. As long as nobody else has begun, what is paid for goes on.
  -- One that has ended is over: a renewal may be overtaken by its attempt's end.
  local ended = redis.call('HGET', past, index .. ':' .. ARGV[2])
  if get_byte(win, index) ~= 0 or get_byte(att, index) > attempt or (ended and ended ~= 'lost') then
    return 0
  end
  if ended then
    redis.call('HDEL', past, index .. ':' .. ARGV[2])
    count('returned')
  end
  recall(index, attempt)
  redis.call('ZREM', rq, index)
end
if not held then
  redis.call('ZREM', sent, index)
  redis.call('HSET', own, index, ARGV[2] .. ':' .. ARGV[3])
end
redis.call('ZADD', fl, now + ARGV[4], index)
local id = index .. ':' .. ARGV[2]
local aside = held_by(id)
if aside then
  take_place(aside[4], aside[3], id, ARGV[4])
end
return 1
