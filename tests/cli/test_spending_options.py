"""`run --max-cost` and `--dry-run`: what is refused before anything starts, and what a plan comes to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalfarm.errors import ExitCode

Run = Callable[..., Any]
USAGE = int(ExitCode.USAGE)
CAREFUL = ("run", "bls", "--model", "sim-careful")


def refused(ended: Any, message: str, hint: str) -> bool:
    assert (ended.code, ended.out, ended.err) == (USAGE, "", f"Error: {message}\n\nhint: {hint}\n")
    return True


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_budget_of_nothing_is_refused_before_anything_starts(
    evalfarm: Run, tmp_path: Path, more: tuple[str, ...]
) -> None:
    ended = evalfarm(*CAREFUL, "--max-cost", "0", *more)
    assert refused(ended, "--max-cost 0 leaves nothing to spend", "give an amount in USD above 0, as in --max-cost 5")
    assert not (tmp_path / "home").exists()


def test_a_budget_over_a_model_without_a_price_is_refused(evalfarm: Run) -> None:
    ended = evalfarm("run", "bls", "--model", "house-model", "--max-cost", "5")
    assert refused(
        ended,
        "a budget needs a price for every model, and none is known for 'house-model'",
        "add it to a price table of your own and name that in EVALFARM_PRICES (docs/reference/settings.md), "
        "or run without --max-cost",
    )


def test_a_run_to_estimate_by_is_refused_where_nothing_is_estimated(evalfarm: Run) -> None:
    ended = evalfarm(*CAREFUL, "--like", "nightly")
    assert refused(ended, "--like says what to estimate by", "add --dry-run or --max-cost, or leave it out")


def test_an_unknown_run_to_estimate_by_is_refused(evalfarm: Run, tmp_path: Path) -> None:
    ended = evalfarm(*CAREFUL, "--dry-run", "--like", "nightly")
    store = (tmp_path / "home" / "store").as_uri()
    assert refused(ended, f"there is no run 'nightly' in {store}", "there are no runs yet")


def test_limits_that_cannot_be_used_are_refused_before_anything_starts(
    evalfarm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "limits.toml"
    path.write_text("[models.gpt-5]\nconcurrency = 0\n", encoding="utf-8")
    monkeypatch.setenv("EVALFARM_LIMITS", str(path))
    for words in (CAREFUL, (*CAREFUL, "--dry-run")):
        ended = evalfarm(*words)
        assert refused(
            ended,
            f"the limits in {path}:2 cannot be used: models.gpt-5.concurrency: "
            "Input should be greater than or equal to 1",
            "docs/guides/limits-and-money.md shows a file of limits; unset EVALFARM_LIMITS to run without",
        )
    assert not (tmp_path / "home" / "store").exists()


def test_a_dry_run_is_one_document_too(evalfarm: Run, tmp_path: Path) -> None:
    ended = evalfarm("run", "bls", "--model", "gpt-5", "--harness", "loop", "--variant", "plain", "--dry-run", "--json")
    told = json.loads(ended.out)
    assert (ended.code, ended.err) == (0, "")
    assert (told["suite"], told["cases"], told["repeats"], told["like"], told["budget"]) == ("bls", 5, 1, None, None)
    (arm,) = told["estimate"]["arms"]
    assert (arm["trials"], arm["basis"], arm["trial_usd"]) == (5, "guessed", pytest.approx(0.0175))
    assert told["power"]["cases"] == 5
    assert not (tmp_path / "home").exists()


def test_a_dry_run_needs_no_key_and_says_how_it_knows(evalfarm: Run) -> None:
    ended = evalfarm("run", "bls", "--model", "gpt-5", "--model", "house-model", "--dry-run")
    text = " ".join(ended.out.split())
    assert "5 cases × 10 arms × 1 repeat. Nothing was started." in text
    assert "It may cost an amount that is not known and take about" in text
    assert "A price is not known: name a table of your own in EVALFARM_PRICES." in text
    assert "Guessed: prices × the tokens that a turn takes as a rule" in text
    assert max(map(len, ended.out.splitlines())) <= 100
