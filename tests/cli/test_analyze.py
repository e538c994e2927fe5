import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalfarm.cli.reading.analyze import analyze
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import UsageError

FIXTURE = next(
    golden
    for golden in json.loads((Path(__file__).parents[1] / "analysis" / "golden.json").read_text())["cases"]
    if golden["id"] == "published_fixture"
)


def published() -> list[tuple[bool, ...]]:
    """Three trials of each of 108 cases: 83 passed thrice, 12 twice, 11 once, 2 never."""
    twice = [tuple(repeat != failed for repeat in range(3)) for failed in FIXTURE["inputs"]["fail_run_of_2of3"]]
    once = [tuple(repeat == passed for repeat in range(3)) for passed in FIXTURE["inputs"]["pass_run_of_1of3"]]
    return [(True,) * 3] * 83 + twice + once + [(False,) * 3] * 2


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.csv"
    rows = [f"q{n:03},{repeat},{ended}" for n, case in enumerate(published()) for repeat, ended in enumerate(case)]
    path.write_text("\n".join(["case,repeat,pass", *rows]), encoding="utf-8")
    return path


@pytest.fixture
def analyzed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What the command prints."""

    def run(*words: object) -> str:
        analyze.main([str(word) for word in words], standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_the_published_study_is_told_in_three_lines(study: Path, analyzed: Callable[..., str]) -> None:
    lines = [line.rstrip() for line in analyzed(study).splitlines()]
    assert lines[:5] == [
        "324 planned = 284 passed + 40 failed + 0 inconclusive + 0 infra failed + 0 not run",
        "Weakest: all trials: 284 of 324 trials passed, by case 87.7 % [82.1, 91.6]",
        "Steadiness: 21.3 % flipped at 3 repeats, D 14.2 % [9.8, 20.2], spread no more than rerun noise.",
        "FOREIGN: these rows were not produced by evalfarm; what was run is not known.",
        "Rows of study, 324 attempts",
    ]
    for told in (
        "-      -        -        23 of 108 at 3  21.3 [14.6, 29.9]  14.2 [9.8, 20.2]",
        "-      -        -          76.9    98.1  86.1 … 88.9    2.6  no (p 0.74)",
    ):
        assert told in lines
    assert max(map(len, lines)) <= 100


def test_the_published_study_has_its_golden_numbers(study: Path, analyzed: Callable[..., str]) -> None:
    summary = RunSummary.model_validate_json(analyzed(study, "--json"))
    (cell,) = summary.cells
    (pass_3,) = (of.rate.value for of in cell.pass_hat_k if of.k == 3)
    (any_3,) = (of.rate.value for of in cell.pass_at_k if of.k == 3)
    spread = cell.repeat_spread
    found: dict[str, Any] = {
        "pooled": cell.pass_rate.value,
        "lo": cell.pass_rate.low,
        "hi": cell.pass_rate.high,
        "flip_obs": cell.flip_rate.value,
        "flip_lo": cell.flip_rate.low,
        "flip_hi": cell.flip_rate.high,
        "D": cell.disagreement.value,
        "D_lo": cell.disagreement.low,
        "D_hi": cell.disagreement.high,
        "sd_one_run": spread.sd_one_run.value,
        "sd_observed": spread.sd_observed,
        "cochran_Q": spread.q,
        "cochran_p": spread.p,
        "pass_hat_3": pass_3,
        "pass_at_3": any_3,
    }
    expected = {name: value for name, value in FIXTURE["expected"].items() if name in found}
    assert found == pytest.approx(expected, abs=1e-8)
    assert (summary.manifest, spread.more_than_noise) == (None, False)


def test_the_same_report_comes_as_a_page_and_as_markdown(study: Path, analyzed: Callable[..., str]) -> None:
    page, text = analyzed(study, "--html"), analyzed(study, "--markdown")
    for told in (page, text):
        assert "these rows were not produced by evalfarm" in told
        assert "21.3 % flipped at 3 repeats" in told
    assert page.startswith("<!doctype html>")
    assert text.startswith("## Rows of study, 324 attempts")


def test_a_bad_row_ends_the_command_with_its_name(tmp_path: Path, analyzed: Callable[..., str]) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("case,repeat,pass\na,0,true\na,1,never\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"^rows\.csv, line 3: pass is never; it must be true or false"):
        analyzed(path)


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (["a,0,PASS"], "Steadiness cannot be estimated: no case was decided twice in one arm."),
        (["a,0,PASS", "b,0,FAIL"], "Steadiness cannot be estimated: no case was decided twice in one arm."),
        (["a,0,INCONCLUSIVE", "a,1,INFRA_FAILED"], "No trial was decided: this run says nothing about the plugin."),
        (
            ["a,0,PASS", "a,1,FAIL"],
            "Steadiness: 100.0 % flipped at 2 repeats, D 100.0 % [20.7, 100.0], spread no more than rerun noise.",
        ),
    ],
)
def test_too_little_is_said_to_be_too_little(
    tmp_path: Path, analyzed: Callable[..., str], rows: list[str], line: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["case,repeat,label", *rows]), encoding="utf-8")
    assert line in [told.rstrip() for told in analyzed(path).splitlines()]
    for form in ("--html", "--markdown", "--json"):
        assert "nan" not in analyzed(path, form).lower().replace("finance", "")
