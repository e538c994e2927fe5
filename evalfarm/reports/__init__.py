"""What people and programs read, drawn from documents alone.

run/           one run: terminal, Markdown, HTML page with its pictures, one trial, the JSON schema
comparison/    several runs against each other, gates and plans, for the terminal and as Markdown
table.py       one table, on a terminal and as Markdown
numbers.py     how a number is written
safe_text.py   text from models and tools, made harmless
"""
