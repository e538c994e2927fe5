"""The page that `bench.simulate` writes, and the floors that its figures are held to."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

SUITES = 4000  #: simulated per cell of the tables
AGAIN = 10  #: times as many for a figure that came out below its floor
REFERENCE = 6000  #: suites behind each floor
TESTS = 1000  #: for the exact tests, which take longest
NIGHTS = 20_000  #: on which nothing changed; those with a drop are `TESTS`
SIZES = (5, 20, 108)
REPEATS = (3, 10, 30)

Table = dict[tuple[int, int], list[dict[str, float]]]
"""(cases, repeats) -> for each kind of plugin the share that held, by column; of nights: (nights, points) -> one."""


@dataclass(frozen=True)
class Column:
    """One interval, and the worst coverage that an independent simulation found, by (cases, repeats)."""

    title: str
    floors: dict[tuple[int, int], float]


def by_size(*floors: float) -> dict[tuple[int, int], float]:
    """One floor per cell, case sizes outermost."""
    return dict(zip(product(SIZES, REPEATS), floors, strict=True))


def flat(
    five: float | None, twenty: float, most: float, repeats: tuple[int, ...] = REPEATS
) -> dict[tuple[int, int], float]:
    """One floor per number of cases."""
    given = zip(SIZES, (five, twenty, most), strict=True)
    return {(cases, r): floor for cases, floor in given if floor is not None for r in repeats}


RATES = {
    "pass": Column("pass rate", by_size(0.964, 0.978, 0.978, 0.957, 0.949, 0.941, 0.953, 0.945, 0.943)),
    "flips": Column("observed flip rate", by_size(0.861, 0.931, 0.906, 0.927, 0.936, 0.925, 0.946, 0.928, 0.939)),
    "d": Column("disagreement D", by_size(0.970, 0.979, 0.982, 0.941, 0.969, 0.968, 0.954, 0.948, 0.951)),
    "f3": Column("flips of 3 repeats", by_size(0.861, 0.978, 0.981, 0.927, 0.961, 0.962, 0.946, 0.946, 0.941)),
    "hat3": Column("pass^3", flat(0.86, 0.925, 0.925)),
}
DIFFERENCES = {
    "paired": Column("difference, new cases", flat(0.948, 0.948, 0.948)),
    "did": Column("difference in differences", flat(0.945, 0.945, 0.945)),
    "rerun": Column("difference, same cases", flat(0.944, 0.944, 0.944)),
    "bar": Column("limit against a bar", flat(0.94, 0.94, 0.94)),
    "family": Column("pass rate, families", flat(None, 0.90, 0.90)),
    "judged": Column("judge-corrected", {(108, repeats): 0.93 for repeats in REPEATS}),
}
SINGLE = {
    "pass": Column("pass rate", flat(0.86, 0.921, 0.921, (1,))),
    "paired": Column("BP-t", flat(0.948, 0.948, 0.948, (1,))),
    "newcombe": Column("Newcombe", {}),
    "tango": Column("Tango", {}),
    "bar": Column("bar: Clopper-Pearson", flat(0.94, 0.94, 0.94, (1,))),
    "wilson": Column("bar: Wilson", {}),
    "jeffreys": Column("bar: Jeffreys", {}),
}
FIGURES = {
    "p50": Column("latency p50", flat(0.94, 0.94, 0.94)),
    "p95": Column("latency p95", flat(0.92, 0.92, 0.92)),
    "closed": Column("p95: both ends", {}),
    "moderate": Column("mean, log-sd 0.7", flat(None, 0.91, 0.93)),
    "heavy": Column("mean, log-sd 1.5", flat(None, 0.83, 0.88)),
}
LEVELS = {
    "test": Column("rerun test", {}),
    "spread": Column("spread across repeats", {}),
}


def lines(table: Table, columns: dict[str, Column], *, highest: bool = False) -> str:
    """A Markdown table of worst / mean over the cells of each size."""
    rows = [["cases", "repeats", *(column.title for column in columns.values())], ["---"] * (len(columns) + 2)]
    for (cases, repeats), found in sorted(table.items()):
        texts = [told([one[name] for one in found if name in one], highest=highest) for name in columns]
        rows.append([str(cases), str(repeats), *texts])
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def night_lines(table: Table) -> str:
    """A Markdown table of the nightly rule: nights in the baseline, points of the drop, alerts, and what was said."""
    rows = [["nights", "drop", "alerts", "said"], ["---"] * 4]
    for (nights, points), [found] in sorted(table.items()):
        rows.append([str(nights), f"{points} points", f"{found['alerts']:.4f}", f"{found['said']:.4f}"])
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def told(values: list[float], *, highest: bool) -> str:
    if not values:
        return "–"
    worst = max(values) if highest else min(values)
    return f"{worst:.3f} / {np.mean(values):.3f}"


@dataclass(frozen=True)
class Held:
    """The worst coverage of an interval at one size, held against its floor."""

    title: str
    size: tuple[int, int]
    floor: float
    worst: float

    @property
    def errors(self) -> float:
        """How many standard errors of the difference the figure lies above its floor."""
        suites = 1 / REFERENCE + 1 / (SUITES * (AGAIN if self.worst < self.floor else 1))
        return (self.worst - self.floor) / float(np.sqrt(self.floor * (1 - self.floor) * suites))


COLUMNS = {"rates": RATES | DIFFERENCES, "single": SINGLE, "figures": FIGURES}


def below_floor(table: str, cases: int, repeats: int, found: dict[str, float]) -> frozenset[str]:
    """The figures of one kind of plugin that lie below their floors."""
    floors = {name: column.floors.get((cases, repeats), 0.0) for name, column in COLUMNS.get(table, {}).items()}
    return frozenset(name for name, value in found.items() if value < floors.get(name, 0.0))


def held(tables: dict[str, Table]) -> Iterator[Held]:
    """Every figure that has a floor."""
    for table, columns in COLUMNS.items():
        for size, found in sorted(tables[table].items()):
            for name, column in columns.items():
                values = [one[name] for one in found if name in one]
                if size in column.floors and values:
                    yield Held(column.title, size, column.floors[size], min(values))


def fallen_short(tables: dict[str, Table]) -> list[str]:
    """Every figure that lies further below its floor than the error of the two simulations allows, in words."""
    return [
        f"{one.title} at {one.size[0]} cases × {one.size[1]} repeats: {one.worst:.4f} is below {one.floor}"
        for one in held(tables)
        if one.errors < -3
    ]


def floor_lines(tables: dict[str, Table]) -> str:
    """A Markdown table of the figures below their floors, the furthest first."""
    rows = [["interval", "cases", "repeats", "there", "here", "standard errors apart"], ["---"] * 6]
    for one in sorted((one for one in held(tables) if one.worst < one.floor), key=lambda one: one.errors):
        size = [str(count) for count in one.size]
        rows.append([one.title, *size, f"{one.floor:.3f}", f"{one.worst:.4f}", f"{one.errors:.1f}"])
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


PAGE = """# How often the intervals hold

Written by `make simulate`: seeded, {suites} simulated suites per kind of plugin and size, so that a figure of .95 has
a standard error of {error:.3f}. Each cell tells the worst and the mean coverage over seven kinds of plugin: case rates
from beta distributions of (mean, intraclass correlation) (.877, .342), (.5, .3), (.98, .5), (.99, .3), (.95, .7) and
(.9, .05), and a mixture of 70 % of cases always right, 8 % never and 22 % at .6. The functions are those that the
reports use; nominal is .95. The formulas are in `evalfarm/analysis`. What came out below the figure that it is held
against (last section) was simulated anew on {many} suites, and these are told: their standard error is {less:.3f}.

## Rates

{rates}
## Differences and the rest

{differences}
The limit against a bar is one-sided. Families are five cases, of which two in three share their rate. The judge
accepts 10 % of what people reject, rejects 5 % of what they accept, and is corrected from 60 labels.

## Every case run once

{single}
For a difference BP-t decides: it serves repeats as well. For a bar Clopper and Pearson's limit does: Wilson's and
Jeffreys' claim too much near the ceiling.

## Latency and tokens

Log-normal figures, of whose variance on the log scale 20, 50 or 80 % lies between cases. An open end counts as
holding; the column beside p95 tells how often both ends are closed.

{figures}
## False alarms of the tests

The largest and the mean share, of {tests} suites in which nothing differs, that a test at .05 rejects. With {tests}
suites a true .05 shows as .07 somewhere among so many cells.

{levels}
## The nightly rule

At 108 cases of the first kind, 3 repeats a night and 6 more to confirm, with a baseline of so many nights: the share of
nights that alert, beside what `rule_check.nightly_odds` says it is.

{nights}
## Held against another simulation

The same intervals were programmed and simulated once before, independently, on the same kinds of plugin, with
{reference} suites each. Of {all} figures above, the worst over the kinds of plugin, {above} are as high as there or
higher. The others are below, as far as chance puts them: for each of these intervals the golden cases hold the two
programs to the same numbers, to eight digits, so that both simulations estimate one and the same coverage. More than
three standard errors would fail this command.

{floors}"""


def page(tables: dict[str, Table]) -> str:
    """The whole document."""
    return PAGE.format(
        suites=SUITES,
        tests=TESTS,
        error=np.sqrt(0.95 * 0.05 / SUITES),
        rates=lines(tables["rates"], RATES),
        differences=lines(tables["rates"], DIFFERENCES),
        single=lines(tables["single"], SINGLE),
        figures=lines(tables["figures"], FIGURES),
        levels=lines(tables["levels"], LEVELS, highest=True),
        nights=night_lines(tables["nights"]),
        many=AGAIN * SUITES,
        less=np.sqrt(0.95 * 0.05 / SUITES / AGAIN),
        reference=REFERENCE,
        all=len(list(held(tables))),
        above=sum(one.worst >= one.floor for one in held(tables)),
        floors=floor_lines(tables),
    )
