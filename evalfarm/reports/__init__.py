"""What people and programs read of a run, all drawn from its RunSummary alone.

findings.py    what a report says, in its order
numbers.py     how a number is written
safe_text.py   text from models and tools, made harmless
tables.py, case_tables.py           the figures as tables, by arm and by case
pictures.py, plots.py, pairs.py     the page's pictures: which, drawn how, and of which two arms
terminal.py, markdown.py, page.py   the three renderings
trace_view.py  one recorded trial, readable
blocks.py      a report as sentences and tables, for the terminal and as Markdown
comparison.py, gate.py, planning.py   several runs against each other, and plans
parts.py, pair_names.py, points.py    what these share
schema.py      the JSON schema of RunSummary
"""
