"""The frozen records that cross from one room to another.

suite.py     what is asked: Suite, Case, Server, Plugin, Variant
route.py     which calls a route must hold: Expectation, Check, CallRule
answer.py    what an answer must mean and rests on: Fact, Fixture, Reference, Rubric, VerdictRow
run.py       what is planned and what happened: Plan, Trial, Trace, Manifest
bundle.py              what is kept of a conversation: a bundle of flat rows
conversation.py        where a conversation comes from, and its row of figures
conversation_rules.py  what the rules over conversations look for, as data
judging.py   what judges are shown and say, labelled answers, adjudications
figures.py   figures with their intervals, as a summary tells them
verdict.py   what was concluded: Label, Result, RunSummary
"""
