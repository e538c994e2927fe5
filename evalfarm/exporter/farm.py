"""What goes on at the moment: queues, workers, open runs, their money, models, Redis. Pure."""

from collections.abc import Iterator

from evalfarm.broker import JUDGING, QUEUES
from evalfarm.contracts.run import QueueName
from evalfarm.exporter.catalogue import (
    BUDGET,
    BUDGET_LEFT,
    BUDGET_PROJECTED,
    IN_FLIGHT,
    MODEL_CAP,
    MODEL_IN_FLIGHT,
    MODEL_LIMIT,
    MODEL_PAUSED,
    OPEN_RUNS,
    PROGRESS,
    QUEUE_DEPTH,
    REDIS_MOST,
    REDIS_USED,
    SLOTS,
    UNTENDED,
    WAITING,
    WORKERS,
)
from evalfarm.exporter.families import Sample
from evalfarm.exporter.labels import Bound
from evalfarm.exporter.seen import NightOf, Seen
from evalfarm.runstate import FarmView, Limits, OpenRun

LEAST_CLOSED = 20
"""Trials of a run that must be closed before their price says what the others will cost."""

_QUEUE_NAMES: dict[str, str] = {name: queue for queue, name in QUEUES.items()} | {JUDGING: JUDGING}
_ALWAYS: tuple[QueueName, ...] = ("interactive", "nightly")


def of_farm(seen: Seen, farm: FarmView, bound: Bound) -> Iterator[Sample]:
    """All of it. A run whose manifest is not known yet is left out until it is."""
    for name, messages in farm.waiting_messages.items():
        yield Sample(QUEUE_DEPTH, messages, (_QUEUE_NAMES[name],))
    yield Sample(WORKERS, farm.workers)
    yield Sample(SLOTS, farm.slots)
    yield Sample(UNTENDED, seen.untended)
    yield Sample(REDIS_USED, farm.memory_used_bytes)
    if farm.memory_most_bytes:
        yield Sample(REDIS_MOST, farm.memory_most_bytes)
    by_night: dict[NightOf, list[OpenRun]] = {}
    for night in seen.nights:  # with a 0 where nothing goes on, so that a rule finds a series at every time
        by_night.setdefault(bound.night(night.of), [])
    for view in farm.runs:
        if (manifest := seen.manifests.get(view.run)) is not None:
            by_night.setdefault(bound.night(NightOf(manifest.suite, manifest.queue)), []).append(view)
    for of, views in by_night.items():
        yield from _of_runs(of, views)
    yield from _of_models(farm, seen.limits)


def projected_usd(view: OpenRun) -> float:
    """What a run with a budget will have cost: its budget, until enough of it is closed to tell."""
    spent = view.money.spent_usd
    if view.closed < LEAST_CLOSED:
        return view.money.budget_usd or 0.0
    return spent / view.closed * view.planned


def _of_runs(of: NightOf, views: list[OpenRun]) -> Iterator[Sample]:
    yield Sample(OPEN_RUNS, len(views), of)
    yield Sample(WAITING, sum(view.waiting for view in views), of)
    yield Sample(IN_FLIGHT, sum(view.in_flight for view in views), of)
    if views:
        yield Sample(PROGRESS, min(view.last_closed_s for view in views), of)
    bounded = [view for view in views if view.budget is not None]
    if bounded:
        monies = [view.money for view in bounded]
        yield Sample(BUDGET, sum(money.budget_usd or 0.0 for money in monies), of)
        left = sum(money.left_usd or 0.0 for money in monies)
        yield Sample(BUDGET_LEFT, left, of)
        yield Sample(BUDGET_PROJECTED, sum(map(projected_usd, bounded)), of)


def _of_models(farm: FarmView, limits: Limits) -> Iterator[Sample]:
    for model, load in farm.models.items():
        limit = limits.of(model).concurrency
        yield Sample(MODEL_PAUSED, load.paused_s, (model,))
        yield Sample(MODEL_IN_FLIGHT, load.in_flight, (model,))
        if limit is not None:
            yield Sample(MODEL_LIMIT, limit, (model,))
            yield Sample(MODEL_CAP, limit if load.cap is None else min(load.cap, limit), (model,))
