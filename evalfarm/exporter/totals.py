"""What all runs that are kept took, as counters. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from evalfarm.contracts.tally import ArmTally, AttemptCounts
from evalfarm.exporter.catalogue import (
    ATTEMPTS,
    COST,
    DUPLICATES,
    INFRA_FAILURES,
    REDISPATCHED,
    STARTED,
    TOKENS,
    TRIALS,
)
from evalfarm.exporter.families import Metric, Sample
from evalfarm.exporter.labels import ArmLabels, Bound
from evalfarm.exporter.seen import NightOf, Took

_Counted = Iterator[tuple[Metric, tuple[str, ...], float]]


def of_totals(took: Iterable[Took], bound: Bound) -> Iterator[Sample]:
    """Sums over runs. They grow as long as no run is removed, and the exporter keeps those that are while it lives."""
    sums: dict[tuple[Metric, tuple[str, ...]], float] = defaultdict(float)
    for one in took:
        for metric, labels, value in _of_run(one, bound):
            sums[metric, labels] += value
    # Metric by metric, as a scrape has them.
    for metric, labels in sorted(sums, key=lambda key: (key[0].name, key[1])):
        yield Sample(metric, sums[metric, labels], labels)


def _of_run(one: Took, bound: Bound) -> _Counted:
    yield from _of_attempts(bound.night(one.of), one.tally.attempts, one.tally.arms)
    for arm in one.tally.arms:
        labels = bound.arm(ArmLabels.of(one.of, arm))
        yield COST, labels, arm.known_usd
        for verdict, count in arm.closed.items():
            yield TRIALS, (*labels, verdict), count
        for kind, count in arm.failures.items():
            yield INFRA_FAILURES, (*labels, kind), count
        if arm.tokens is not None:
            for kind, count in arm.tokens.model_dump().items():
                yield TOKENS, (*labels, kind), count


def _of_attempts(night: NightOf, attempts: AttemptCounts, arms: tuple[ArmTally, ...]) -> _Counted:
    yield STARTED, night, attempts.started
    yield DUPLICATES, night, attempts.duplicates
    yield REDISPATCHED, night, attempts.redispatched
    decided = sum(count for arm in arms for verdict, count in arm.closed.items() if verdict != "infra_failed")
    failed = sum(count for arm in arms for kind, count in arm.failures.items() if kind != "lost")
    ends = {
        "counted": decided,
        "infra_failed": failed,
        "lost": attempts.lost,
        "late": attempts.late,
        "superseded": attempts.superseded,
    }
    for outcome, count in ends.items():
        yield ATTEMPTS, (*night, outcome), count
