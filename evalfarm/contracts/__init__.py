"""The frozen records that cross from one room to another.

suite.py     what is asked: Suite, Case, Expectation, Server, Plugin, Variant
run.py       what is planned and what happened: Plan, Trial, Trace, Manifest
verdict.py   what was concluded: Label, Result, RunSummary
"""
