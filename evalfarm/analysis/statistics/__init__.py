"""Estimators, intervals and tests: pure functions over arrays of cases and trials.

stats.py        rates over cases with their intervals: pass rate, bounds, flips
of_k.py         what k trials of a case show together: pass@k, pass^k
steadiness.py   whether a case ends the same way again: disagreement, rarefied flips, spread across repeats
figures.py      latency, tool calls, tokens
paired.py       tests and intervals for two arms on the same cases; single_runs.py: without repeats
comparisons.py  what they add up to: findings, differences in differences; ranking.py: places of several
regression.py   the nightly rule
rule_check.py   how often the nightly rule errs
drift.py        slow drift, one case watched trial by trial, a rate against a fixed bar
planning.py     what a plan can resolve
judges.py       a judge against human labels
"""
