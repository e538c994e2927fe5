"""Judges a recorded trace; never runs anything.

grade.py       a trace's labels, what they add up to, and the trial's result
tool_route.py  the grader of the tool route: which tools were called, with what, and what came back
call_rules.py  rules about single calls: how many fit, in which order
answer.py      the grader of the answer: facts, held against the evidence that was returned
reading/       how rules over words read an answer: what it settles, asks for, claims, and the figures in it
labelled.py    a labelled answer before the rules, to hold them against people's labels
evidence.py    whether a trace is whole, and which fixtures were returned in it
verdict_table.py  what labels add up to, by the suite's own table
paths.py       the path language in which a check says where its records are
"""
