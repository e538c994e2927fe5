"""Conversations as rows: the rules a second time as SQL, both held together, and what many conversations add up to.

bundles.py    a trace to a bundle of flat rows, and back; origins.py: where a run's conversations come from
sources.py    where conversations are read from, and how they are exported
rollouts.py   a session file of Codex to a trace; its calls and its turns so far: rollout_calls.py, rollout_session.py
tables.py     bundles as tables, and the rows that rules.sql makes of them
agreement.py  the two implementations of the rules held against each other
totals.py     figures of groups; attention.py: what needs a look; metrics.py: the document, and what changed
"""
