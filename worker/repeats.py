"""A repeat is never a cached answer: a response that another attempt of the run was given says nothing new."""

import logging

from evalfarm.contracts.run import Plan, Trace, Trial
from evalfarm.errors import BrokerUnavailable
from evalfarm.runstate import Client, Repeated, note_answers

log = logging.getLogger(__name__)


def checked(client: Client, plan: Plan, trace: Trace) -> Trace:
    """The trace; or, where another attempt got one of its responses before, the same as an infrastructure failure.

    Its responses are noted for the attempts to come. Out of reach of Redis it passes unchecked.
    """
    ids = [request.response_id for request in trace.requests if request.response_id is not None]
    if not ids:
        return trace
    try:
        found = note_answers(client, plan.run, trace.trial.index, trace.attempt, ids, size=plan.size)
    except BrokerUnavailable as error:
        log.warning("cannot tell whether trial %d was answered out of a cache: %s", trace.trial.index, error.message)
        return trace
    if found is None:
        return trace
    failure = why_no_repeat(plan, trace, found)
    return trace.model_copy(update={"outcome": "infra_failed", "failure": failure, "failure_kind": "model"})


def why_no_repeat(plan: Plan, trace: Trace, found: Repeated) -> str:
    """What is wrong and what to do, with both trials by name."""
    first = _named(plan.trial(found.index), found.attempt)
    return (
        f"no repeat: {_named(trace.trial, trace.attempt)} was given the response {found.response_id!r}, "
        f"which {first} had been given before; turn off whatever caches answers between here and the model"
    )


def _named(trial: Trial, attempt: int) -> str:
    return f"trial {trial.index} (case {trial.case}, repeat {trial.repeat}, attempt {attempt})"
