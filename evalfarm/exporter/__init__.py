"""The exporter: what Prometheus reads of the farm. It reads the ledger and the store, and writes nothing.

families.py   what a metric is, and the text that Prometheus reads
catalogue.py  every metric: name, kind, labels, help
seen.py       what one look found: the facts that the metrics are made of
reading.py    a look at the ledger and the store; what cannot change is read once
labels.py     pure: which arms have series of their own
owing.py      pure: which night each schedule owes
nights.py     pure: the last runs, their figures, verdicts and judges, as metrics
totals.py     pure: what all runs took, as counters
farm.py       pure: what goes on at the moment, as metrics
page.py       pure: all of it as one page
serving.py    the paths of a process that is watched: /metrics, /healthz, /readyz
"""
