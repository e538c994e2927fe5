-- ARGV: index, attempt, verdict, payloads, micro-USD of those (empty: not known) … of results that are in object
-- storage already. Those of them that the ledger holds open are closed, and no event tells of it. Of the attempts up
-- to this one, those that left no payload were lost. Returns how many were closed.
local restored = 0
for at = 1, #ARGV, 5 do
  local index, attempt, verdict = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
  if get_byte(win, index) == 0 then
    local started = get_byte(att, index)
    if attempt > started then
      set_byte(att, index, attempt)
      count('attempts', attempt - started)
      count('lost', math.min(attempt - started, attempt - ARGV[at + 3]))
    end
    local arm = arm_of(index)
    close(index, verdict == 'infra_failed' and INFRA_FAILED or attempt, verdict, arm)
    spend(arm, ARGV[at + 4], 0)
    restored = restored + 1
  end
end
return restored
