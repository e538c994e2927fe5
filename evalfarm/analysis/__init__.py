"""From results to numbers: over records that are already closed. Only `rows` and `foreign` read or write anything.

rows.py         one flat table of trials, and the door to DuckDB
foreign.py      rows that evalfarm did not produce; row_rules.py: what such a row must be
tables.py       what a summary needs of the rows, asked by queries.py
describe.py     what is said of some cells of one arm; latency.py: quantiles of many sets of trials
breaks.py       which level breaks first
aggregate.py    rows to the summary

stats.py        rates over cases with their intervals: pass rate, bounds, pass@k, pass^k, flips
steadiness.py   whether a case ends the same way again: disagreement, rarefied flips, spread across repeats
figures.py      latency, tool calls, tokens
paired.py       tests and intervals for two arms on the same cases
comparisons.py  what they add up to: findings, ranks, differences in differences
regression.py   the nightly rule
rule_check.py   how often the nightly rule errs
drift.py        slow drift, one case watched trial by trial, a rate against a fixed bar
planning.py     what a plan can resolve
judges.py       a judge against human labels

arms.py           summaries to arms that can be compared, their pairs and counts
comparability.py  whether two arms may be compared
notes.py          what the documents below say of a run, an arm and its cases
verdicts.py       the document of a comparison
nights.py, gate.py   one arm against the nights before it; the document of a gate
rule_file.py      the numbers of the nightly rule as a person writes them
plans.py          the documents of a plan's power and of a run against itself
"""
