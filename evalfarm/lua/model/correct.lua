-- What a request was let through for was an estimate. KEYS: the model's control. ARGV: ms for each token, tokens that
-- it took beyond the estimate, which may be less than none.
local at = redis.call('HGET', KEYS[1], 'tokens')
if at then
  redis.call('HSET', KEYS[1], 'tokens', string.format('%.3f', at + ARGV[1] * ARGV[2]))
end
