"""Conversations scored by fixed rules: every figure a count, a sum or a pattern; no model takes part.

rules.toml  what the rules look for
rules.py    that file, with what a suite adds
calls.py    the calls of a trace, each once, and what each is counted as
misses.py   what explains a conversation that missed
score.py    a trace to its row

The same rules stand a second time as SQL, in `evalfarm.analysis.conversations`. Neither reads the other; every run
compares what they find.
"""
