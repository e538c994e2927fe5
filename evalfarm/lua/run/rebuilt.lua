-- ARGV: segments in object storage, first trial that is open. Trials are handed out from now on.
-- 1: done; 0: another one was first.
if redis.call('HDEL', meta, 'rebuilding') == 0 then
  return 0
end
redis.call('HSET', meta, 'segments', ARGV[1], 'cursor', ARGV[2])
return 1
