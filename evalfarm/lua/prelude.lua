-- Precedes every script: the keys by name, the server's clock, and what several scripts do.
local win, att, fl, own, rq, cnt, past, out, meta = unpack(KEYS)
local INFRA_FAILED = 254  -- in win: closed without a verdict on the plugin
local MOST_ATTEMPTS = 200 -- a byte holds an attempt's number, and 254 is taken

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) -- ms; the server's, so no worker's clock matters

local function get_byte(key, index)
  return redis.call('BITFIELD', key, 'GET', 'u8', '#' .. index)[1]
end

local function set_byte(key, index, value)
  redis.call('BITFIELD', key, 'SET', 'u8', '#' .. index, value)
end

local function count(name)
  redis.call('HINCRBY', cnt, name, 1)
end

local function log(kind, index, attempt, row)
  if row then
    redis.call('XADD', out, '*', 'k', kind, 'i', index, 'n', attempt, 'r', row)
  else
    redis.call('XADD', out, '*', 'k', kind, 'i', index, 'n', attempt)
  end
end

local function exists()
  return redis.call('HEXISTS', meta, 'size') == 1
end

local function cancelled()
  return redis.call('HEXISTS', meta, 'cancelled') == 1
end

local function out_of_attempts(attempt, most)
  return attempt >= math.min(tonumber(most), MOST_ATTEMPTS)
end

-- Takes a trial out of flight; 1: it was leased, 0: only handed out.
local function release(index)
  redis.call('ZREM', fl, index)
  return redis.call('HDEL', own, index)
end

local function close(index, winner, verdict)
  release(index)
  redis.call('ZREM', rq, index)
  set_byte(win, index, winner)
  count(verdict)
end
