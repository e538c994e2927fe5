"""Summaries held against each other, against earlier nights, against a bar; and plans.

arms.py            summaries to arms that can be compared, their pairs and counts
comparability.py   whether two arms may be compared
notes.py           what the documents below say of a run, an arm and its cases
verdicts.py        the document of a comparison
nights.py, gate.py one arm against the nights before it; the document of a gate
rule_file.py       the numbers of the nightly rule as a person writes them
plans.py           the documents of a plan's power and of a run against itself
targets.py         labelled answers with the labels that count, alone and in pairs
calibration.py     the document of a judge held against people's labels
judge_faults.py    the faults that it shows, and whether the judge may be relied on
"""
