-- ARGV: the last event archived so far, number of segments stored now, the last event in them.
-- 1: noted; 0: another archiver was first.
if not exists() or (redis.call('HGET', meta, 'archived_id') or '0') ~= ARGV[1] then
  return 0
end
redis.call('HSET', meta, 'segments', ARGV[2], 'archived_id', ARGV[3])
return 1
