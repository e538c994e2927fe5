-- Precedes the scripts of a run's judging: its keys, and its money.
local due, judges, work = PREFIX .. 'due', PREFIX .. 'judges', PREFIX .. 'judged'

local function add_judging(name, micro_usd)
  if micro_usd ~= 0 then
    redis.call('HINCRBY', judges, name, string.format('%.0f', micro_usd))
  end
end

-- What an attempt cost; empty: not known, and then what was set aside for it stays spent.
local function pay(cost, set_aside)
  if cost == '' then
    redis.call('HINCRBY', judges, 'unpriced', 1)
  end
  local micro_usd = tonumber(cost) or set_aside
  add_judging('cost', micro_usd)
  if micro_usd > tonumber(redis.call('HGET', judges, 'dearest') or 0) then
    redis.call('HSET', judges, 'dearest', string.format('%.0f', micro_usd))
  end
end
