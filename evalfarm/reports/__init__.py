"""What people and programs read of a run, all drawn from its RunSummary alone.

findings.py    what a report says, in its order
numbers.py     how a number is written
safe_text.py   text from models and tools, made harmless
terminal.py, markdown.py, page.py   the three renderings
trace_view.py  one recorded trial, readable
schema.py      the JSON schema of RunSummary
"""
