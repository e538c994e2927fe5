"""`compare`, `gate`, `power` and `aa` over runs that are in the store."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.notes import ArmNote
from evalfarm.cli.main import guarded
from evalfarm.cli.reading.comparisons import aa, compare, power
from evalfarm.cli.reading.confirming import SEED_OFFSET, confirm_plan, label_of
from evalfarm.cli.reading.gating import gate
from evalfarm.contracts.run import Plan
from evalfarm.contracts.suite import Case, Plugin, Server, Suite, Variant
from evalfarm.contracts.verdict import RunSummary
from evalfarm.store import Store
from tests.made_runs import CODEX, DIGESTS, GUIDED, LOOP, OTHER, made_source

STEADY = [3] * 16 + [2] * 3 + [1]
BROKEN = [0] * 8 + STEADY[8:]
ELSE = "sha256:" + "e" * 64
COMMANDS: dict[str, click.Command] = {"compare": compare, "gate": gate, "power": power, "aa": aa}


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs `evalfarm WORDS…` to its end: the exit code, what it printed, and what it said beside it."""

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        command = COMMANDS[words[0]]
        code = guarded(lambda: command.main(list(words[1:]), prog_name=f"evalfarm {words[0]}", standalone_mode=False))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def plan_of(summary: RunSummary, asked: Mapping[str, str]) -> Plan:
    assert summary.manifest is not None
    names = tuple(dict.fromkeys(case.case for case in summary.cases))
    suite = Suite(
        suite="small",
        version="1",
        plugin=Plugin(name="p"),
        server=Server(python="server.py"),
        variants={"plain": Variant(), "guided": Variant()},
        cases=tuple(Case(id=name, turns=(asked.get(name, "?"),)) for name in names),
    )
    return Plan(run=summary.run, suite=suite, arms=summary.manifest.arms, cases=names, repeats=3)


@pytest.fixture
def store() -> Store:
    return Store(f"file://{Path(os.environ['EVALFARM_HOME']).absolute()}/store")


@pytest.fixture
def keep(store: Store) -> Callable[..., None]:
    """Keeps a finished run, or one that is not, as `tests.made_runs.made_source` makes it."""

    def put(
        run: str,
        counts: Mapping[ArmName, Sequence[int]],
        decided: int = 3,
        *,
        finished: bool = True,
        asked: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> None:
        summary = made_source(run, counts, decided, tags=True, **changes).summary
        assert summary.manifest is not None
        store.put_plan(plan_of(summary, asked or {}))
        store.put_manifest(summary.manifest)
        if finished:
            store.put_summary(summary)

    return put


@pytest.fixture
def nights(keep: Callable[..., None]) -> None:
    """Five nights and one that is broken, all labelled alike."""
    for night in range(1, 6):
        keep(f"night-{night}", {LOOP: STEADY}, label="nightly", created_at=float(night))
    keep("broken", {LOOP: BROKEN}, label="nightly", created_at=6.0)
    keep("good", {LOOP: STEADY}, label="nightly", created_at=7.0)


def test_two_runs_are_compared_and_the_exit_code_is_0_whatever_is_found(typed: Any, keep: Any) -> None:
    keep("a", {LOOP: STEADY})
    keep("b", {LOOP: BROKEN})
    code, out, err = typed("compare", "a", "b")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "New cases: worse, -40.0 [-62.4, -13.8] points. m · loop · plain"


def test_a_label_is_the_newest_run_that_carries_it(typed: Any, nights: None) -> None:
    code, out, _ = typed("compare", "night-1", "nightly", "--json")
    assert (code, [run["run"] for run in json.loads(out)["runs"]]) == (0, ["night-1", "good"])


def test_the_arms_of_one_run_are_compared_among_themselves(typed: Any, keep: Any) -> None:
    keep("a", {LOOP: STEADY, GUIDED: BROKEN, CODEX: STEADY})
    code, out, _ = typed("compare", "a", "--harness", "loop", "--json")
    pairs = json.loads(out)["pairs"]
    assert (code, [(pair["baseline"]["name"], pair["candidate"]["name"]) for pair in pairs]) == (
        0,
        [("m · loop · plain", "m · loop · guided")],
    )


def test_a_comparison_is_printed_as_markdown(typed: Any, keep: Any) -> None:
    keep("a", {LOOP: STEADY, GUIDED: BROKEN})
    code, out, _ = typed("compare", "a", "--markdown")
    assert (code, out.splitlines()[0]) == (
        0,
        "**New cases: worse, -40.0 \\[-62.4, -13.8\\] points. guided vs plain (m · loop)**  ",
    )


def test_runs_that_must_not_be_compared_end_with_2_the_list_and_how_to_allow_it(typed: Any, keep: Any) -> None:
    keep("a", {LOOP: STEADY})
    keep("b", {LOOP: STEADY}, digests=DIGESTS | {"grader": ELSE}, isolation="harness")
    code, out, err = typed("compare", "a", "b")
    assert (code, out) == (2, "")
    assert err == (
        "Error: m · loop · plain of run 'a' and m · loop · plain of run 'b' cannot be compared: "
        "they differ in what was not meant to differ\n"
        "  grader: sha256:999999999999 against sha256:eeeeeeeeeeee\n"
        "  isolation: cell against harness\n\n"
        "hint: compare runs that share these, or say that you mean it: "
        "--allow-different grader --allow-different isolation\n"
    )
    code, out, _ = typed("compare", "a", "b", "--allow-different", "grader", "--allow-different", "isolation")
    assert code == 0
    assert "  DIFFERS, as was allowed: isolation: cell against harness" in out.splitlines()


def test_a_case_that_asks_something_else_now_is_found_in_the_stored_plans(typed: Any, keep: Any) -> None:
    keep("a", {LOOP: STEADY})
    keep("b", {LOOP: STEADY}, asked={"case-3": "something else?"})
    code, _, err = typed("compare", "a", "b")
    assert (code, "  cases/case-3: " in err, "--allow-different cases" in err) == (2, True, True)


def test_a_good_night_held(typed: Any, nights: None) -> None:
    code, out, err = typed("gate", "good", *(word for n in range(1, 6) for word in ("--baseline", f"night-{n}")))
    assert (code, err, out.splitlines()[0]) == (0, "", "HELD: run good")


def test_a_label_as_baseline_is_every_finished_run_before_that_carries_it(typed: Any, nights: None, keep: Any) -> None:
    keep("cut-short", {LOOP: STEADY}, finished=False, label="nightly", created_at=5.5)
    code, out, _ = typed("gate", "broken", "--baseline", "nightly", "--json")
    assert (code, json.loads(out)["baselines"]) == (3, [f"night-{night}" for night in range(1, 6)])


def test_a_night_whose_screen_fires_ends_with_3_and_the_command_that_confirms(typed: Any, nights: None) -> None:
    code, out, _ = typed("gate", "broken", "--baseline", "nightly", "--set", "confirm_repeats=4")
    assert (code, out.splitlines()[:4]) == (
        3,
        [
            "INCONCLUSIVE: run broken",
            "m · loop · plain: a drop of 40.0 points (p = 5e-16): 4 fresh repeats of every case decide.",
            "The screen fired. Run the fresh repeats with",
            "  evalfarm gate broken --baseline nightly --set confirm_repeats=4 --confirm",
        ],
    )


def test_a_confirm_run_that_is_there_is_taken_in(typed: Any, nights: None, keep: Any) -> None:
    keep("again", {LOOP: [2 * passed for passed in BROKEN]}, 6, label=label_of("broken"), created_at=6.5)
    code, out, _ = typed("gate", "broken", "--baseline", "nightly", "--json")
    told = json.loads(out)
    assert (code, told["verdict"], told["confirm"]) == (1, "regressed", "again")


def test_the_numbers_of_the_rule_come_from_a_file_and_then_from_the_command(
    typed: Any, nights: None, tmp_path: Path
) -> None:
    rule = tmp_path / "rule.toml"
    rule.write_text("[gate]\nleast_nights = 2\nscreen = 0.2\n", encoding="utf-8")
    words = ("gate", "good", "--baseline", "night-1", "--baseline", "night-2", "--rule", str(rule))
    code, out, _ = typed(*words, "--set", "screen=0.05", "--json")
    told = json.loads(out)
    assert (code, told["rule"]["least_nights"], told["rule"]["screen"]) == (0, 2, 0.05)


def test_a_fixed_bar_decides_without_a_baseline(typed: Any, keep: Any) -> None:
    keep("low", {LOOP: [0] * 20})
    code, out, _ = typed("gate", "low", "--at-least", "0.9")
    assert (code, out.splitlines()[:2]) == (
        1,
        [
            "REGRESSED: run low",
            "m · loop · plain: with 95 % confidence the pass rate stays below the bar of 90.0%.",
        ],
    )


def test_a_gate_is_printed_as_markdown(typed: Any, nights: None) -> None:
    code, out, _ = typed("gate", "good", "--baseline", "night-1", "--markdown")
    assert (code, out.splitlines()[0]) == (3, "**INCONCLUSIVE: run good**  ")


def test_a_plan_of_a_suite_and_one_of_a_run_are_told_what_they_resolve(typed: Any, nights: None) -> None:
    code, out, _ = typed("power", "bls-108", "--repeats", "3", "--json")
    told = json.loads(out)
    assert (code, told["subject"], told["cases"], told["arms"][0]["arm"]) == (0, "bls-108", 108, None)
    assert told["arms"][0]["resolution"]["same_cases"] == pytest.approx(0.05205, abs=1e-5)
    code, out, _ = typed("power", "nightly", "--effect", "0.1", "--json")
    told = json.loads(out)
    assert (code, told["subject"], told["cases"], told["repeats"], told["arms"][0]["arm"]["run"]) == (
        0,
        "good",
        20,
        3,
        "good",
    )


def test_a_run_agrees_with_itself_or_ends_with_1(typed: Any, keep: Any) -> None:
    keep("one-repeat-went-wrong", {LOOP: [2] * 40})
    keep("steady", {LOOP: [3] * 40})
    assert typed("aa", "steady")[0] == 0
    code, out, _ = typed("aa", "one-repeat-went-wrong")
    assert (code, out.splitlines()[0]) == (1, "NOT HELD: run one-repeat-went-wrong against itself, 1 arm")


def rows(path: Path, passes: Sequence[int], repeats: int = 3) -> str:
    lines = ["case,repeat,pass"]
    lines += [
        f"c{at},{repeat},{int((repeat + at) % repeats < passed)}"
        for at, passed in enumerate(passes)
        for repeat in range(repeats)
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_files_of_rows_are_compared_judged_planned_with_and_checked_like_runs(typed: Any, tmp_path: Path) -> None:
    before, after = rows(tmp_path / "a" / "rows.csv", STEADY), rows(tmp_path / "b" / "rows.csv", BROKEN)
    code, out, _ = typed("compare", before, after)
    assert (code, out.splitlines()[0]) == (0, "New cases: worse, -40.0 [-62.4, -13.8] points. all trials")
    assert "UNCHECKED: not all of this was produced by evalfarm" in out
    code, out, _ = typed("gate", after, "--baseline", before, "--set", "least_nights=1")
    # Without white space: at 100 columns the path may be broken anywhere.
    assert (code, f"INCONCLUSIVE:run{after}" in "".join(out.split()), "--confirm" in out) == (3, True, False)
    code, out, _ = typed("power", before, "--json")
    assert (code, json.loads(out)["cases"], json.loads(out)["repeats"]) == (0, 20, 3)
    assert typed("aa", before)[0] == 0


def test_rows_are_not_run_again_to_confirm_them(typed: Any, tmp_path: Path) -> None:
    before, after = rows(tmp_path / "before.csv", STEADY), rows(tmp_path / "after.csv", BROKEN)
    code, out, err = typed("gate", after, "--baseline", before, "--set", "least_nights=1", "--confirm")
    assert (code, out) == (2, "")
    assert err == (
        f"Error: {after} was not produced by evalfarm, so it cannot be run again\n\n"
        "hint: add the fresh repeats to its rows, and judge them together\n"
    )


def test_rows_and_a_run_are_compared_only_where_that_is_allowed(typed: Any, keep: Any, tmp_path: Path) -> None:
    keep("a", {LOOP: [3, 3]})
    path = tmp_path / "rows.csv"
    lines = [f"m,loop,plain,case-{case},{repeat},true" for case in (1, 2) for repeat in range(3)]
    path.write_text("\n".join(["model,harness,variant,case,repeat,pass", *lines]) + "\n", encoding="utf-8")
    code, _, err = typed("compare", "a", str(path))
    assert (code, "  manifest: a against not produced by evalfarm\n" in err) == (2, True)
    assert typed("compare", "a", str(path), "--allow-different", "manifest")[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("compare", "nothing"), "Error: there is no run 'nothing' in "),
        (("compare", "open"), "Error: run 'open' is not finished, so it has no report\n\nhint: go on with it:"),
        (("compare", "night-1"), "Error: run 'night-1' has fewer than two arms to compare: m · loop · plain"),
        (("compare", "night-1", "night-1"), "Error: both runs are 'night-1'"),
        (("compare", "night-1", "good", "--margin", "3"), "Error: a margin of 3 is not between 0 and 1"),
        (("compare", "night-1", "good", "--model", "x"), "Error: no arm of run 'good' can be paired with one of"),
        (("gate", "good"), "Error: there is nothing to hold run 'good' against"),
        (("gate", "good", "--baseline", "good"), "Error: run 'good' is its own baseline"),
        (("gate", "good", "--baseline", "nowhere"), "Error: there is no run 'nowhere' in "),
        (("gate", "good", "--baseline", "other"), "Error: no arm of run 'good' is in its baseline"),
        (("gate", "good", "--at-least", "90"), "Error: a bar of 90 is not between 0 and 1"),
        (("gate", "good", "--baseline", "night-1", "--set", "sreen=1"), "Error: --set: the rule has no number 'sreen'"),
        (("power", "nothing"), "Error: no suite 'nothing': no shipped suite, file or folder has this name; nor is"),
        (("power", "bls", "--effect", "3"), "Error: an effect of 3 is not between 0 and 1"),
        (("power", "bls", "--repeats", "0"), "Error: a plan of 5 cases × 0 repeats resolves nothing"),
        (("aa", "once"), "Error: a self-check of 1 repeats over 2 whole cases shows nothing"),
    ],
)
def test_bad_input_gets_one_message_a_hint_and_2(
    typed: Any, nights: None, keep: Any, words: tuple[str, ...], told: str
) -> None:
    keep("open", {LOOP: STEADY}, finished=False)
    keep("other", {OTHER: STEADY})
    keep("once", {LOOP: [1, 0]}, 1)
    code, out, err = typed(*words)
    assert (code, out) == (2, "")
    assert err.startswith(told)
    assert "\n\nhint: " in err


def test_a_rule_that_is_no_toml_is_refused_with_its_path(typed: Any, nights: None, tmp_path: Path) -> None:
    rule = tmp_path / "rule.toml"
    rule.write_bytes(b"\xff[gate]")
    code, _, err = typed("gate", "good", "--baseline", "night-1", "--rule", str(rule))
    assert (code, err.startswith(f"Error: {rule} cannot be read: ")) == (2, True)


def test_a_confirm_run_asks_the_same_cases_afresh_in_the_arms_to_confirm_alone() -> None:
    summary = made_source("tonight", {LOOP: STEADY, GUIDED: STEADY}).summary
    plan = plan_of(summary, {}).model_copy(update={"seed": 4})
    again = confirm_plan(plan, [ArmNote("tonight", *GUIDED, name=str(GUIDED))], 6)
    assert (again.cases, again.repeats, again.seed) == (plan.cases, 6, 4 + SEED_OFFSET)
    assert [ArmName(*arm.model_dump().values()) for arm in again.arms] == [GUIDED]
    seeds = [{one.trial(index).seed for index in range(one.size)} for one in (plan, again)]
    assert seeds[0] & seeds[1] == set()
