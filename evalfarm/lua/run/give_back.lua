-- ARGV: ms to wait, then index, index … Trials that were handed out and that nobody begins wait for the next hand-out.
for at = 2, #ARGV do
  if redis.call('ZREM', sent, ARGV[at]) == 1 then
    redis.call('ZADD', rq, now + ARGV[1], ARGV[at])
  end
end
