-- KEYS: the table, the run's meta. ARGV: trial, attempt, then for each response its entry and 48 bits of its digest, never 0.
-- Returns {which (from 0), trial, attempt} of the first that another attempt was given; else nothing.
-- An entry of another attempt is left as it is: asked again, this gives the same answer.
local index, attempt = ARGV[1], ARGV[2]
if redis.call('HEXISTS', KEYS[2], 'size') == 0 then
  return nil -- a deleted run stays deleted
end
local found
for at = 3, #ARGV, 2 do
  local bit, told = ARGV[at] * 88, ARGV[at + 1]
  local known = redis.call(
    'BITFIELD', KEYS[1], 'GET', 'u48', bit, 'GET', 'u32', bit + 48, 'GET', 'u8', bit + 80
  )
  local mine = known[2] == tonumber(index) and known[3] == tonumber(attempt)
  if known[1] == tonumber(told) and not mine then
    found = found or { (at - 3) / 2, known[2], known[3] }
  else
    redis.call(
      'BITFIELD', KEYS[1], 'SET', 'u48', bit, told, 'SET', 'u32', bit + 48, index, 'SET', 'u8', bit + 80, attempt
    )
  end
end
return found
