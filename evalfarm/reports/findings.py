"""What a report says and in which order; the renderings differ in form alone."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from evalfarm.contracts.run import NO_MODEL
from evalfarm.contracts.suite import HARNESSES
from evalfarm.contracts.verdict import CaseSummary, CellSummary, FirstBreak, RunSummary, Verdict
from evalfarm.reports.numbers import plural, rate_with_interval

VERDICT_WORDS: dict[Verdict, str] = {
    "passed": "passed",
    "failed": "failed",
    "inconclusive": "inconclusive",
    "infra_failed": "infra failed",
    "not_run": "not run",
}

HELD = "held"
UNDECIDED = "undecided"
_NEED_A_LOOK: tuple[Verdict, ...] = ("failed", "inconclusive", "infra_failed")


class Command(NamedTuple):
    """A command to type next, and what it gives."""

    line: str
    gives: str


def counts(summary: RunSummary) -> str:
    """The five counts, which add up: `45 planned = 39 passed + 6 failed + …`."""
    five = " + ".join(f"{getattr(summary, verdict):,} {words}" for verdict, words in VERDICT_WORDS.items())
    return f"{summary.planned:,} planned = {five}"


def weakest_arm(summary: RunSummary) -> str:
    """One sentence on the arm with the lowest pass rate; its trials first, then the mean over its cases."""
    rated = [(cell.pass_rate.value, cell) for cell in summary.cells if cell.pass_rate.value is not None]
    if not rated:
        return "No trial was decided: this run says nothing about the plugin."
    lowest = min(value for value, _ in rated)
    weakest = [cell for value, cell in rated if value == lowest]
    if lowest == 1:
        return f"Every decided trial passed, in {plural(len(weakest), 'arm')}."
    first = weakest[0]
    others = f", and {plural(len(weakest) - 1, 'more arm')} like it" if weakest[1:] else ""
    return (
        f"Weakest: {arm(first)}{others}: {first.passed:,} of {first.passed + first.failed:,} trials,"
        f" by case {rate_with_interval(first.pass_rate)}"
    )


def broken_levels(summary: RunSummary) -> str:
    """One sentence on the level that broke first, over all cases, models and variants."""
    ends = Counter(end(reading) for reading in summary.breaks)
    total = plural(len(summary.breaks), "reading")
    open_ones = f"; {ends[UNDECIDED]:,} undecided" if ends[UNDECIDED] else ""
    broken = [f"{level} in {ends[level]:,}" for level in HARNESSES if ends[level]]
    if not broken:
        return f"No level broke in {total} (case × model × variant){open_ones}."
    return f"Broke first: {', '.join(broken)} of {total} (case × model × variant){open_ones}."


def caveats(summary: RunSummary) -> tuple[str, ...]:
    """What must be known before a number is believed; the level of isolation always."""
    said = []
    if summary.simulated:
        said.append("SIMULATED: a simulated model took part; its rates say nothing about a real model.")
    if summary.synthetic:
        said.append("SYNTHETIC: the data behind the plugin's server is made up.")
    if not summary.finished:
        said.append(f"UNFINISHED: {plural(summary.not_run, 'trial')} not run yet; the rates are over the rest.")
    isolation = {
        "cell": "cell (each attempt in a sandbox of its own)",
        "harness": "harness (only the product's own sandbox; attempts could see this machine)",
    }
    said.append(f"Isolation: {isolation.get(summary.isolation, summary.isolation)}.")
    return tuple(said)


def identity(summary: RunSummary) -> str:
    """Which run of what: run, suite and version, label."""
    label = f", label {summary.label}" if summary.label else ""
    attempts = plural(summary.attempts, "attempt")
    return f"Run {summary.run} of suite {summary.suite} {summary.manifest.suite_version}{label}, {attempts}"


def arm(of: CellSummary | CaseSummary) -> str:
    """An arm in a few words: `gpt-5 · codex · guided`, and `direct · plain` where no model takes part."""
    words = (of.harness, of.variant) if of.model == NO_MODEL else (of.model, of.harness, of.variant)
    return " · ".join(words)


def cases_to_look_at(summary: RunSummary) -> tuple[CaseSummary, ...]:
    """The cases with a trial that failed, is inconclusive or was lost to infrastructure, arm by arm."""
    order = {(cell.model, cell.harness, cell.variant): at for at, cell in enumerate(summary.cells)}
    found = (case for case in summary.cases if any(case.labels.get(verdict) for verdict in _NEED_A_LOOK))
    return tuple(sorted(found, key=lambda case: order[case.model, case.harness, case.variant]))


def by_arm(cases: Iterable[CaseSummary]) -> dict[str, list[CaseSummary]]:
    """Cases under the name of their arm, both in the order in which they come."""
    named: dict[str, list[CaseSummary]] = {}
    for case in cases:
        named.setdefault(arm(case), []).append(case)
    return named


def tally(case: CaseSummary) -> str:
    """How many of a case's trials did not pass: `2 failed, 1 inconclusive of 3`."""
    parts = [
        f"{case.labels[verdict]:,} {words}"
        for verdict, words in VERDICT_WORDS.items()
        if verdict != "passed" and case.labels.get(verdict)
    ]
    return f"{', '.join(parts)} of {sum(case.labels.values()):,}"


def trials_to_show(case: CaseSummary) -> tuple[int, ...]:
    """The indices of a case's trials that are worth a look."""
    return tuple(index for index, verdict in zip(case.trials, case.verdicts, strict=True) if verdict in _NEED_A_LOOK)


def breaks_first(breaks: Iterable[FirstBreak]) -> tuple[FirstBreak, ...]:
    """The readings that broke before those that held; otherwise in their order."""
    return tuple(sorted(breaks, key=lambda reading: reading.level is None))


def end(reading: FirstBreak) -> str:
    """Where reading the levels ended: the level that broke, `held`, or `undecided`.

    A level whose trials were all lost may have broken: where none broke before it, nothing is known.
    """
    if reading.level is not None:
        return reading.level
    return UNDECIDED if any(score.endswith("/0") for score in reading.passed.values()) else HELD


def levels(breaks: Sequence[FirstBreak]) -> tuple[str, ...]:
    """The levels that ran, in the order in which they are read."""
    return tuple(level for level in HARNESSES if any(level in reading.passed for reading in breaks))


def next_commands(summary: RunSummary) -> tuple[Command, ...]:
    """What to type next."""
    commands = []
    if not summary.finished:
        commands.append(Command(f"evalfarm resume {summary.run}", "run what has not run yet"))
    shown = [index for case in cases_to_look_at(summary) for index in trials_to_show(case)]
    if shown:
        commands.append(Command(f"evalfarm show {summary.run}/{shown[0]}", "what happened in that trial, step by step"))
    commands.append(Command(f"evalfarm report {summary.run} --html", "this report as one page, with every trial"))
    return tuple(commands)
