-- KEYS: due, meta. ARGV: how many items. 1: opened; 0: it was open.
if redis.call('HSETNX', KEYS[2], 'items', ARGV[1]) == 0 then
  return 0
end
for item = 0, ARGV[1] - 1 do
  redis.call('ZADD', KEYS[1], 0, item)
end
return 1
