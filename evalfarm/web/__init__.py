"""The console and the exports over HTTP: GET only, over the rows that `evalfarm metrics` keeps.

tokens.py      personal access tokens in the store; access.py: who may look, and how often one may fail
refusals.py    every way in which a request is turned away, in one shape
asking.py      what a request asks for: the filters
holdings.py    what the store holds, copied here as Parquet files, source by source; sheets.py: a run's own rows
rows.py        the rows of a request: its filters, its scope, in DuckDB; datasets.py: the questions, exporting.py: files
bundles.py     conversations, whole
groups.py      figures of groups; versions.py: two versions of a plugin held against each other
api.py         the API's paths; openapi.py: its description
console.py     the console's pages; conversation_page.py: one conversation; pages.py: templates and style
app.py         all of it as one application
"""
