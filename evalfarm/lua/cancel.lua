-- Nothing more is handed out or claimed. What was handed out but not claimed goes back to waiting, so
-- that what is left in flight is at work, and falls to nothing as it ends.
if exists() then
  redis.call('HSET', meta, 'cancelled', 1)
  for _, index in ipairs(redis.call('ZRANGE', fl, 0, -1)) do
    if redis.call('HEXISTS', own, index) == 0 then
      release(index)
      redis.call('ZADD', rq, now, index)
    end
  end
end
