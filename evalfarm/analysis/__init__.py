"""From results to numbers: pure, over records that are already closed.

stats.py      proportions with their intervals, flips, quantiles
aggregate.py  the results of a run to its RunSummary
"""
