"""From results to numbers: over records that are already closed.

statistics/   pure functions over arrays: estimators, intervals, tests
summary/      one flat table of trials to the summary of a run
arm_name.py   what an arm is called
judgement/    summaries held against each other, against earlier nights, against a bar, and plans
"""
