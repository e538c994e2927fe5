-- ARGV: run, ms to remember. KEYS[2]: the open runs. The state goes; that the run is sealed stays known for a
-- while, so that a worker which comes back late does not take it for a run that Redis lost.
redis.call('UNLINK', win, att, fl, own, rq, cnt, past, out, meta, hold, ids, sent, arms, pace)
redis.call('HSET', meta, 'sealed', 1)
redis.call('PEXPIRE', meta, ARGV[2])
redis.call('SREM', KEYS[2], ARGV[1])
