-- What end.lua and claim.lua do, in this order and in one call. Before it stand both of them, each as a function of what
-- it is told. ARGV: what end.lua is told, then what claim.lua is told. Returns {how it ended, {status, attempt}}.
return { end_({ unpack(ARGV, 1, 9) }), claim({ unpack(ARGV, 10) }) }
