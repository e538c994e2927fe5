"""The frozen records that cross from one room to another.

suite.py     what is asked: Suite, Case, Expectation, Server, Plugin, Variant
run.py       what is planned and what happened: Plan, Trial, Trace, Manifest
figures.py   figures with their intervals, as a summary tells them
verdict.py   what was concluded: Label, Result, RunSummary
"""
