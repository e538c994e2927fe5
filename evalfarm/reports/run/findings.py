"""What a report says and in which order; the renderings differ in form alone."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from evalfarm.analysis.arm_name import ArmName
from evalfarm.contracts.figures import RepeatSpread
from evalfarm.contracts.suite import HARNESSES
from evalfarm.contracts.verdict import CaseSummary, CellSummary, FirstBreak, RunSummary, Verdict
from evalfarm.reports.numbers import percent, plural, probability, rate_with_interval
from evalfarm.reports.run import patched
from evalfarm.reports.run.label_findings import left_open, where_it_failed

VERDICT_WORDS: dict[Verdict, str] = {
    "passed": "passed",
    "failed": "failed",
    "inconclusive": "inconclusive",
    "infra_failed": "infra failed",
    "not_run": "not run",
}

WORDS = (
    ("arm", "one model × one harness × one variant, with all cases and repeats under it"),
    ("direct, loop, codex", "the levels: the tool alone, a small loop around it, the product; read in this order"),
    ("interval", "where the rate of other cases of this kind lies, with 95 % confidence; the case is the unit"),
    ("flipped", "a case that both passed and failed over its repeats; more of them, the more repeats"),
    ("D", "the chance that two reruns of one case end differently; it does not depend on the repeats"),
    ("pass^k, pass@k", "that all of k trials of a case pass, that at least one does"),
    ("inconclusive", "it ran, and what was recorded does not decide it"),
    ("infra failed", "something around the trial broke, three attempts long; it says nothing about the plugin"),
)
"""What a reader must know of a report's words."""

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
        f"Weakest: {arm(first)}{others}: {first.passed:,} of {first.passed + first.failed:,} trials passed,"
        f" by case {rate_with_interval(first.pass_rate)}"
    )


def shakiest_arm(summary: RunSummary) -> str:
    """One sentence on the arm whose reruns disagree most, and whether its repeats differ by more than that."""
    rated = [(cell.disagreement.value, cell) for cell in summary.cells if cell.disagreement.value is not None]
    if not rated:
        return "Steadiness cannot be estimated: no case was decided twice in one arm."
    most, cell = max(rated, key=lambda of: of[0])
    if most == 0:
        repeats = max(cell.flip_rate.repeats for _, cell in rated)
        return f"No case flipped, in {plural(len(rated), 'arm')} at {plural(repeats, 'repeat')}."
    subject = f"Shakiest: {arm(cell)}" if summary.cells[1:] else "Steadiness"
    spread = {
        True: ", repeats spread by more than rerun noise",
        False: ", spread no more than rerun noise",
        None: "",
    }[cell.repeat_spread.more_than_noise]
    return (
        f"{subject}: {percent(cell.flip_rate.value)} flipped at {plural(cell.flip_rate.repeats, 'repeat')},"
        f" D {rate_with_interval(cell.disagreement)}{spread}."
    )


def spread_verdict(spread: RepeatSpread) -> str:
    """Whether repeats differ by more than rerun noise: `no (p 0.74)`; `n/a` where it cannot be tested."""
    if spread.more_than_noise is None:
        return "n/a"
    return f"{'yes' if spread.more_than_noise else 'no'} (p {probability(spread.p)})"


def flipped(summary: RunSummary) -> tuple[CaseSummary, ...]:
    """The cases that both passed and failed, steadiest to shakiest."""
    return steadiest_first(case for case in summary.cases if case.labels["passed"] and case.labels["failed"])


def steadiest_first(cases: Iterable[CaseSummary]) -> tuple[CaseSummary, ...]:
    """By the chance that two trials of the case disagree, and of equals the one that passed more often first."""
    return tuple(sorted(cases, key=lambda case: (_disagreement(case), -case.labels["passed"])))


def _disagreement(case: CaseSummary) -> float:
    passed, failed = case.labels["passed"], case.labels["failed"]
    trials = passed + failed
    return 2 * passed * failed / (trials * (trials - 1)) if trials >= 2 else 0.0


def broken_levels(summary: RunSummary) -> str:
    """One sentence on the level that broke first, over all cases, models and variants; empty where none was read."""
    if not summary.breaks:
        return ""
    ends = Counter(end(reading) for reading in summary.breaks)
    total = plural(len(summary.breaks), "reading")
    open_ones = f"; {ends[UNDECIDED]:,} undecided" if ends[UNDECIDED] else ""
    broken = [f"{level} in {ends[level]:,}" for level in HARNESSES if ends[level]]
    if not broken:
        return f"No level broke in {total} (case × model × variant){open_ones}."
    return f"Broke first: {', '.join(broken)} of {total} (case × model × variant){open_ones}."


def caveats(summary: RunSummary) -> tuple[str, ...]:
    """What must be known before a number is believed; of a run its level of isolation always."""
    if summary.manifest is None:
        return ("FOREIGN: these rows were not produced by evalfarm; what was run is not known.", *summary.notes)
    said = [*patched.lines(summary.manifest.patch)]
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
    return (*said, *left_open(summary), *summary.notes)


def headlines(summary: RunSummary) -> tuple[str, ...]:
    """The sentences that a report opens with: the counts, then what was found."""
    told = (counts(summary), where_it_failed(summary), weakest_arm(summary))
    said = (*told, broken_levels(summary), shakiest_arm(summary))
    return tuple(sentence for sentence in said if sentence)


def identity(summary: RunSummary) -> str:
    """Which run of what: run, suite and version, label; of rows from elsewhere their name."""
    if summary.manifest is None:
        return f"Rows of {summary.run}, {plural(summary.attempts, 'attempt')}"
    label = f", label {summary.label}" if summary.label else ""
    attempts = plural(summary.attempts, "attempt")
    return f"Run {summary.run} of suite {summary.suite} {summary.manifest.suite_version}{label}, {attempts}"


def variants(summary: RunSummary) -> tuple[str, ...]:
    """What each variant of the run is, where the suite says so: `Variant guided: the server publishes instructions`."""
    return tuple(f"Variant {name}: {text}" for name, text in summary.variants.items())


def arm(of: CellSummary | CaseSummary) -> str:
    """An arm in a few words: `gpt-5 · codex · guided`, and `direct · plain` where no model takes part."""
    return str(ArmName.of(of))


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
    """What to type next; nothing for rows from elsewhere, which are in no store."""
    if summary.manifest is None:
        return ()
    commands = []
    if not summary.finished:
        commands.append(Command(f"evalfarm resume {summary.run}", "run what has not run yet"))
    shown = [index for case in cases_to_look_at(summary) for index in trials_to_show(case)]
    if shown:
        commands.append(Command(f"evalfarm show {summary.run}/{shown[0]}", "that trial, step by step"))
    if len(summary.cells) > 1:
        commands.append(Command(f"evalfarm compare {summary.run}", "arm against arm, case by case"))
    commands.append(Command(f"evalfarm report {summary.run} --html > report.html", "one page, with every trial"))
    return tuple(commands)
