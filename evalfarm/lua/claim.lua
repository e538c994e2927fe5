-- ARGV: index, token, lease in ms. Returns {status, attempt}.
local index, token = ARGV[1], ARGV[2]
local size = tonumber(redis.call('HGET', meta, 'size') or 0)
if tonumber(index) < 0 or tonumber(index) >= size then
  return { 'closed', 0 } -- a message for a run that is gone, or for no trial of its plan
end
local winner = get_byte(win, index)
if winner ~= 0 then
  return { 'closed', 0 }
end
if cancelled() then
  return { 'cancelled', 0 }
end
local lease = redis.call('HGET', own, index)
if lease then
  local attempt, owner = lease:match('^(%d+):(.*)$')
  return { owner == token and 'ok' or 'held', tonumber(attempt) } -- 'ok': this very call, replayed
end
if not redis.call('ZSCORE', fl, index) then
  return { 'held', 0 } -- waits for its next hand-out; this message is an old one
end
local attempt = get_byte(att, index) + 1
set_byte(att, index, attempt)
redis.call('HSET', own, index, attempt .. ':' .. token)
redis.call('ZADD', fl, now + ARGV[3], index)
count('attempts')
return { 'ok', attempt }
