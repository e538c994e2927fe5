-- The provider said 429: nobody asks this model for a while, and then by half as many trials.
-- KEYS: the model's control. ARGV: ms to pause, configured cap (0: none).
-- The cap falls once a pause, however many requests at work meet the same 429.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local paused, cap = unpack(redis.call('HMGET', KEYS[1], 'paused', 'cap'))
local until_ms, most = tonumber(paused or 0), tonumber(ARGV[2])
if until_ms <= now and most > 0 then
  local cap_now = math.min(tonumber(cap or most), most)
  redis.call('HSET', KEYS[1], 'cap', math.max(1, math.floor(cap_now / 2)), 'streak', 0)
end
redis.call('HSET', KEYS[1], 'paused', string.format('%d', math.max(until_ms, now + ARGV[1])))
redis.call('PEXPIRE', KEYS[1], 86400000)
