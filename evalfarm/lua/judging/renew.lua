-- ARGV: item, attempt, ms to hold it, then of each judge its model and that one's cap (0: none).
-- One that is at work is held for longer; one that was given up is left alone.
if redis.call('HGET', work, ARGV[1]) == ARGV[2] then
  redis.call('ZADD', due, now + ARGV[3], ARGV[1])
  for at = 4, #ARGV, 2 do
    take_place(ARGV[at], tonumber(ARGV[at + 1]), 'judging:' .. ARGV[1] .. ':' .. ARGV[2], ARGV[3])
  end
end
