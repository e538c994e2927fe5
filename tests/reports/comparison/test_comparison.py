from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.text import Text

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.gate import Gate, GateQuestion, judge_run
from evalfarm.analysis.judgement.notes import Source
from evalfarm.analysis.judgement.plans import plan_power, run_power, self_checks
from evalfarm.analysis.judgement.verdicts import Question, Verdicts, compare_arms, compare_runs
from evalfarm.analysis.statistics.regression import NIGHTLY
from evalfarm.reports.comparison import comparison, gate, planning
from evalfarm.reports.comparison.blocks import Block, to_markdown, to_terminal
from tests.made_runs import (
    CODEX,
    DIGESTS,
    DIRECT,
    GUIDED,
    LOOP,
    OTHER,
    OTHER_CODEX,
    made_case,
    made_run,
    made_source,
)

A = [3, 3, 2, 3, 1]
B = [2, 0, 1, 3, 1]
STEADY = [3] * 16 + [2] * 3 + [1]
BROKEN = [0] * 8 + STEADY[8:]
COMMAND = "evalfarm gate tonight --baseline nightly --confirm"


def printed(blocks: list[Block], *, width: int = 100, colour: bool = False) -> str:
    file = StringIO()
    console = Console(file=file, width=width, force_terminal=colour, color_system="standard" if colour else None)
    to_terminal(blocks, console=console)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def pair() -> Verdicts:
    """The five-case pair, with one new case, one loss and an allowed difference."""
    before = made_source("a", {LOOP: A}, label="before").summary
    after = made_source("b", {LOOP: B}, digests=DIGESTS | {"grader": "sha256:" + "e" * 64}).summary
    seconds = [
        [case.model_copy(update={"latency_s": (1.0 + at) * slower}) for at, case in enumerate(summary.cases)]
        for summary, slower in ((before, 1.0), (after, 1.5))
    ]
    lost = made_case("case-5", LOOP, 1, 3, planned=4, latency_s=7.0)
    new = made_case("case-6", LOOP, 3, 3)
    first = before.model_copy(update={"cases": tuple(seconds[0]), "simulated": True})
    second = after.model_copy(update={"cases": (*seconds[1][:4], lost, new), "synthetic": True})
    return compare_runs(Source(first, {}), Source(second, {}), Question(allowed={"grader"}))


def arms() -> Verdicts:
    counts = {DIRECT: [3] * 5, LOOP: A, OTHER: B, CODEX: [3, 2, 1, 3, 2], OTHER_CODEX: [1, 2, 0, 3, 0]}
    return compare_arms(made_source("r", counts), Question())


def gated(tonight: list[int], *, again: list[int] | None = None) -> Gate:
    nights = [made_source(f"night-{n}", {LOOP: STEADY}, tags=True) for n in range(1, 7)]
    run = made_source(
        "tonight", {LOOP: tonight, GUIDED: tonight}, tags=True, digests=DIGESTS | {"files": "sha256:" + "e" * 64}
    )
    confirm = None if again is None else made_source("again", {LOOP: again}, 6, digests=run.summary.manifest.digests)  # type: ignore[union-attr]
    return judge_run(run, nights, confirm, GateQuestion(at_least=0.5))


BLOCKS = {
    "comparison-pair": lambda: comparison.report(pair()),
    "comparison-arms": lambda: comparison.report(arms()),
    "gate-to-confirm": lambda: gate.report(replace(gated(BROKEN), confirm_with=COMMAND)),
    "gate-regressed": lambda: gate.report(gated(BROKEN, again=[2 * passed for passed in BROKEN])),
    "gate-held": lambda: gate.report(gated(STEADY)),
    "power": lambda: planning.power_report(plan_power("bls-108", 108, 3, 0.03)),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_the_report_reads_as_stored_on_the_terminal(name: str, snapshots: Path) -> None:
    assert printed(BLOCKS[name]()) == (snapshots / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["comparison-pair", "gate-regressed"])
def test_the_report_reads_as_stored_in_markdown(name: str, snapshots: Path) -> None:
    assert to_markdown(BLOCKS[name]()) == (snapshots / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", BLOCKS)
def test_no_line_is_wider_than_100_columns(name: str) -> None:
    for width in (100, 200):
        assert max(map(len, printed(BLOCKS[name](), width=width).splitlines())) <= 100


@pytest.mark.parametrize("name", BLOCKS)
def test_colour_adds_nothing_to_the_words(name: str) -> None:
    coloured = printed(BLOCKS[name](), colour=True)
    assert "\x1b[" in coloured
    plain = Text.from_ansi(coloured).plain
    assert [line.rstrip() for line in plain.splitlines()] == printed(BLOCKS[name]()).splitlines()


def test_the_finding_of_a_pair_is_in_the_first_three_lines() -> None:
    base, better = [5] * 40, [5] * 10 + [10] * 30
    found = compare_arms(made_source("r", {LOOP: base, GUIDED: better}, 10), Question())
    assert printed(comparison.report(found)).splitlines()[:3] == [
        "New cases: better, +37.5 [+28.0, +45.1] points. guided vs plain (m · loop)",
        "Same cases: better, +37.5 [+31.7, +43.3] points on a rerun.",
        "Pass rates: 87.5 % against 50.0 %, on 40 cases decided in both.",
    ]


def test_equivalence_is_told_with_its_margin() -> None:
    study = [3] * 83 + [2] * 12 + [1] * 11 + [0] * 2
    found = compare_runs(made_source("a", {LOOP: study}), made_source("b", {LOOP: study}), Question())
    first = printed(comparison.report(found)).splitlines()[0]
    assert first == "New cases: equivalent within ±3 points, 0.0 [-1.8, +1.8] points. m · loop · plain"


def test_results_from_elsewhere_are_said_to_be_unchecked() -> None:
    foreign = [
        Source(made_run(name, made_case("c", LOOP, 1, 2)).model_copy(update={"manifest": None}), {}) for name in "ab"
    ]
    told = printed(comparison.report(compare_runs(foreign[0], foreign[1], Question())))
    assert "UNCHECKED: not all of this was produced by evalfarm" in told


def test_a_name_cannot_steer_the_terminal_or_use_mark_up() -> None:
    hostile = ArmName("[bold]\x1b[2J|x", "loop", "plain")
    blocks = comparison.report(compare_arms(made_source("r", {LOOP: A, hostile: B}), Question()))
    assert r"[bold]\x1b[2J|x vs m" in printed(blocks)
    assert r"\[bold\]\\x1b\[2J\|x vs m" in to_markdown(blocks)


def test_a_run_s_own_steadiness_is_said_where_a_plan_is_reckoned_by_it() -> None:
    told = printed(planning.power_report(run_power(made_source("r", {LOOP: A}).summary, 3, 0.2)))
    assert "Measured: D = 26.7 % for m · loop · plain in run r; reckoned with 30.6 %\n" in told
    assert "Reckoned with: D smoothed by one more case that is a coin flip, so that it is never 0.\n" in told


def test_a_self_check_says_which_arm_did_not_hold() -> None:
    cases = [made_case(f"c{at}", LOOP, 3, 4) for at in range(40)]
    steady = [made_case(f"c{at}", CODEX, 4, 4) for at in range(40)]
    found = self_checks(made_run("r", *cases, *steady), np.random.default_rng(0))
    assert printed(planning.self_check_report(found)).splitlines() == [
        "NOT HELD: run r against itself, 2 arms",
        "Repeats that differ by more than chance: m · loop · plain. No interval over them holds.",
        "",
        "Every split of the repeats in two, or many of them",
        "arm                verdict   splits  alarms  allowed  p repeats alike",
        "─────────────────────────────────────────────────────────────────────",
        "m · loop · plain   not held       6       3      0.3           <0.001",
        "m · codex · plain  held           6       0      0.3            1.000",
    ]


def test_a_gate_opens_with_the_worst_of_the_arms_that_share_its_verdict() -> None:
    run = made_source("tonight", {DIRECT: [3] * 5, LOOP: A, CODEX: [3] * 5})
    lines = printed(gate.report(judge_run(run, [], None, GateQuestion(at_least=0.9)))).splitlines()
    assert lines[0] == "INCONCLUSIVE: run tonight (3 inconclusive)"
    assert lines[1].startswith("m · loop · plain: too little evidence whether the pass rate reaches the bar of 90.0%")


def test_a_rule_of_other_numbers_is_told_with_them() -> None:
    run = made_source("tonight", {LOOP: STEADY})
    rule = replace(NIGHTLY, screen=0.2, confirm_repeats=9, least_drop=0.05, least_nights=2)
    nights = [made_source(f"n{n}", {LOOP: STEADY}) for n in range(2)]
    told = printed(gate.report(judge_run(run, nights, None, GateQuestion(rule))))
    assert "  Screen at p ≤ 0.2, then 9 fresh repeats of every case." in told
    assert "  Alert at p ≤ 0.005 over both, if the drop is 5 points or more." in told
