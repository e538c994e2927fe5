"""One flat table of trials to the summary of a run. Only `rows`, `own` and `foreign` read or write anything.

rows.py       the table, and the door to DuckDB
own.py        the rows of a run of ours
foreign.py    rows that evalfarm did not produce; row_rules.py: what such a row must be
tables.py     what a summary needs of the rows, asked by queries.py
describe.py   what is said of some cells of one arm; latency.py: quantiles of many sets of trials
breaks.py     which level breaks first
aggregate.py  rows to the summary
"""
