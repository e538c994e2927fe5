"""Why a worker would not begin a run's trials, for whoever asks how the run stands: `f:{run}:refused`, for a while."""

from evalfarm.runstate.client import Client
from evalfarm.runstate.connection import answered

_TOLD_FOR_S = 600


def note_refusal(client: Client, run: str, why: str) -> None:
    """Say why a worker would not begin an open run's trials; forgotten after ten minutes. Raises BrokerUnavailable."""
    with answered(client):
        if client.exists(f"f:{{{run}}}:meta"):  # a run's name out of a message may be anything
            client.set(f"f:{{{run}}}:refused", why, ex=_TOLD_FOR_S)


def refusal_of(client: Client, run: str) -> str | None:
    """Why a worker would not begin a run's trials in the last ten minutes; None: none refused them."""
    with answered(client):
        why = client.get(f"f:{{{run}}}:refused")
    return why.decode() if isinstance(why, bytes) else None
