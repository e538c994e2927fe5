"""The night that a schedule owes, or will owe next. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from evalfarm.contracts.schedule import Night, NightEnd
from evalfarm.exporter.catalogue import SCHEDULE_DUE, SCHEDULE_DUE_INFO
from evalfarm.exporter.families import Sample
from evalfarm.exporter.labels import Bound
from evalfarm.exporter.seen import NightOf, Owed

LOOKED_BACK = 20
"""Nights of a schedule that are looked at: what it owes for longer is as good as forgotten."""


def owed_since(nights: Sequence[Night], ends: Mapping[str, NightEnd], runs: Collection[str]) -> float | None:
    """When the first night was due that a schedule owes, or when the next one is; epoch seconds.

    `nights` are its last ones in order, `ends` by stamp, `runs` those that were opened. A night is owed from when it is
    due until its run is opened, and again from when the next one is due until it is judged. None: no night says when
    the next one is due.
    """
    if not nights:
        return None
    started = [at for at, night in enumerate(nights) if _has_started(night, ends.get(night.stamp), runs)]
    judged = [at for at, night in enumerate(nights) if _is_judged(ends.get(night.stamp))]
    to_start = nights[started[-1]].next_due_at if started else nights[0].due_at
    to_judge = judged[-1] + 1 if judged else 0
    late = nights[to_judge].next_due_at if to_judge < len(nights) else None
    return min((due for due in (to_start, late) if due is not None), default=None)


def _has_started(night: Night, end: NightEnd | None, runs: Collection[str]) -> bool:
    return night.decision != "skipped" and (night.run in runs or _is_judged(end))


def _is_judged(end: NightEnd | None) -> bool:
    return end is not None and end.verdict not in ("skipped", "failed")


def of_schedules(owed: Iterable[Owed], bound: Bound) -> Iterator[Sample]:
    """Of each suite's schedules the one that is furthest behind, so that none hides behind another."""
    first: dict[NightOf, Owed] = {}
    for one in sorted(owed, key=lambda one: (one.due_at, one.schedule)):
        if bound.holds_night(one.of):
            first.setdefault(one.of, one)
    for of, one in first.items():
        yield Sample(SCHEDULE_DUE, one.due_at, of)
    for of, one in first.items():
        yield Sample(SCHEDULE_DUE_INFO, 1.0, (*of, one.schedule))
