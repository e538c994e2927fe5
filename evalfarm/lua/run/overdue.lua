-- ARGV: how many at most, ms of a lease. Returns index, attempt, index, attempt … of leases that ran out.
-- When nobody looked for half a lease, nobody could renew either, as far as is known: then all have a whole one more.
local found = {}
if not exists() then
  return found
end
local tended = tonumber(redis.call('HGET', meta, 'tended') or now)
redis.call('HSET', meta, 'tended', now)
if now - tended > ARGV[2] / 2 then
  redis.call('HSET', meta, 'grace', now + ARGV[2])
end
if now < tonumber(redis.call('HGET', meta, 'grace') or 0) then
  return found
end
for _, index in ipairs(redis.call('ZRANGEBYSCORE', fl, '-inf', now, 'LIMIT', 0, ARGV[1])) do
  found[#found + 1] = tonumber(index)
  found[#found + 1] = get_byte(att, index)
end
return found
