"""Answers drawn for people to label, and the pass rates that their labels give."""

from collections.abc import Sequence

from evalfarm.contracts.calibration import Share
from evalfarm.contracts.drawn import Draw, StratifiedRate, Stratum
from evalfarm.reports.comparison.blocks import Block, Said, Typed
from evalfarm.reports.numbers import percent, plural, rate_with_interval
from evalfarm.reports.table import Table


def drawn(made: Draw) -> list[Block]:
    """What was drawn of each arm, and how to go on."""
    rows = tuple((arm.arm, _of(arm.failed), _of(arm.passed)) for arm in made.arms)
    told = f"{plural(len(made.trials), 'answer')} of run {made.run} drawn at random within the judge's labels"
    return [
        Said(f"{told}, seed {made.seed}", finding=True),
        Table("Drawn", ("arm", "failed by the judge", "passed by the judge"), rows, words=1),
        Said("Have people label all of them, without the judge's label:"),
        Typed(f"evalfarm adjudicate {made.run} --draw {made.each} --export labels.yaml"),
    ]


def rates(found: Sequence[StratifiedRate]) -> list[Block]:
    """The pass rate of each arm as people would give it, with the labels that it comes from."""
    rows = tuple(
        (
            one.arm,
            rate_with_interval(one.judged),
            _hits(one.of_passed),
            _hits(one.of_failed),
            str(one.disputed),
            _as_people(one),
        )
        for one in found
    )
    heads = (
        "arm",
        "by the judge",
        "people pass, of\nwhat it passed",
        "of what\nit failed",
        "disputed",
        "as people\nwould give it",
    )
    note = (
        "Labels were drawn at random within the judge's labels; each side weighs what it weighs in the run. "
        "Disputed answers are left out."
    )
    return [*map(_finding, found), Table("Pass rates as people would give them", heads, rows, words=1, note=note)]


def _finding(one: StratifiedRate) -> Said:
    labels = f"from {plural(one.of_passed.of + one.of_failed.of, 'label')} drawn at random (seed {one.seed})"
    if one.rate.value is None:
        return Said(f"{one.arm}: not known {labels}, none of them on one side of the judge", finding=True)
    return Said(f"{one.arm}: {_as_people(one)} {labels}; the judge says {percent(one.judged.value)}", True)


def _of(stratum: Stratum) -> str:
    return f"{len(stratum.drawn)} of {stratum.answers}"


def _hits(found: Share) -> str:
    return f"{found.hits} of {found.of}" if found.of else "–"


def _as_people(one: StratifiedRate) -> str:
    return rate_with_interval(one.rate)
