"""What is read of one run, all drawn from its RunSummary.

findings.py    what a report says, in its order
tables.py, case_tables.py           the figures as tables, by arm and by case
pictures.py, plots.py, pairs.py     the page's pictures: which, drawn how, and of which two arms
terminal.py, markdown.py, page.py   the three renderings
trace_view.py  one recorded trial, readable
schema.py      the JSON schema of RunSummary
"""
