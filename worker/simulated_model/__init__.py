"""The simulated model: a server of the Responses API whose answers come from policies.

request.py    a request's body -> what its model sees, and what it costs
response.py   a move -> a response's body, or its server-sent events
app.py        the server around the two
"""

from worker.simulated_model.app import SEED_HEADER, simulated_app

__all__ = ["SEED_HEADER", "simulated_app"]
