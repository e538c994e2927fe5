"""Several runs against each other, gates and plans.

blocks.py      a report as sentences and tables, for the terminal and as Markdown
comparison.py, gate.py, planning.py   what each of them says
parts.py, pair_names.py, points.py    what these share
"""
