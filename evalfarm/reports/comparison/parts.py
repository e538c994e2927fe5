"""What the reports on several runs share."""

from collections.abc import Iterator, Mapping, Sequence

from evalfarm.analysis.judgement.arms import Figure
from evalfarm.analysis.judgement.notes import CaseChange, RunNote
from evalfarm.analysis.statistics.figures import FigureChange
from evalfarm.reports.comparison.blocks import Listed, Said
from evalfarm.reports.comparison.points import factor, p_value, points
from evalfarm.reports.numbers import plural
from evalfarm.reports.run.patched import told

MOST_CASES = 10  #: of those that came out differently; the JSON document has them all
FIGURE_WORDS: dict[Figure, str] = {
    "latency_s": "latency",
    "tool_calls": "tool calls",
    "reasoning_tokens": "reasoning tokens",
}


def caveats(runs: Sequence[RunNote]) -> Iterator[Said]:
    """What must be known of the runs before a number is believed."""
    for run in runs:
        if run.patch is not None:
            yield Said(f"PATCHED: in run {run.run}, {told(run.patch)}.")
    if any(run.simulated for run in runs):
        yield Said("SIMULATED: a simulated model took part; nothing here speaks of a real model.")
    if any(run.synthetic for run in runs):
        yield Said("SYNTHETIC: the data behind the plugin's server is made up.")
    if any(run.suite_version is None for run in runs):
        yield Said("UNCHECKED: not all of this was produced by evalfarm, so nothing is known of what else differs.")


def changed_cases(title: str, changes: Sequence[CaseChange]) -> Iterator[Listed]:
    """The cases that came out differently, in the order given."""
    if changes:
        lines = [
            f"{change.case}: {change.candidate} against {change.baseline} ({points(change.change)})"
            for change in changes[:MOST_CASES]
        ]
        more = len(changes) - MOST_CASES
        lines += [f"… and {plural(more, 'more case')}"] if more > 0 else []
        yield Listed(title, tuple(lines))


def figure_rows(figures: Mapping[Figure, FigureChange]) -> Iterator[tuple[str, ...]]:
    """Figure, cases, factor and p of each figure that enough cases report."""
    for figure, change in figures.items():
        if change.cases >= 2:
            yield FIGURE_WORDS[figure], str(change.cases), factor(change.factor), p_value(change.p)


def some(names: Sequence[str], most: int = 3) -> str:
    """The first names of many, and how many more there are."""
    more = f" and {len(names) - most} more" if names[most:] else ""
    return ", ".join(names[:most]) + more
