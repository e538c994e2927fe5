"""Judges a recorded trace; never runs anything.

grade.py       a trace's labels, what they add up to, and the trial's result
tool_route.py  the grader of the tool route: which tools were called, with what, and what came back
paths.py       the path language in which a check says where its records are
"""
