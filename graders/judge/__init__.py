"""The model judge: labels for criteria that no rule can decide, from a model that never sees what is expected.

exhibits.py  a trace, or a labelled answer, to what a judge is shown
prompt.py   an exhibit and a rubric to a request of the Responses API
reply.py    a response to labels or a preference, or why it cannot be used
ask.py      asking until a reply can be used, a bounded number of times
panel.py    the opinions of one judge or several to one label
bench.py    one item of a run's judging: claim, ask, store, commit
"""
