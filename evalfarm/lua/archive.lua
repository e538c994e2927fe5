-- ARGV: number of segments stored, id of the last event in them. 1: noted; 0: another archiver was first.
local segments = tonumber(redis.call('HGET', meta, 'segments') or 0)
if not exists() or tonumber(ARGV[1]) ~= segments + 1 then
  return 0
end
redis.call('HSET', meta, 'segments', ARGV[1], 'archived_id', ARGV[2])
return 1
