"""Runs held against each other and against the nights before them, as a user does it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cases.loader import shipped_suites

pytestmark = pytest.mark.slow


def run(place: Any, *words: str) -> str:
    """Run a suite to its end: the run's id."""
    ended = place.run("run", *words)
    assert ended.code == 0, ended.err
    return str(ended.err.split()[1].rstrip(":"))


def test_two_runs_of_a_flaky_model_are_not_told_apart(place: Any) -> None:
    flaky = ("bls-108", "--model", "sim-flaky", "--harness", "loop", "--variant", "plain", "--repeats", "2")
    first, second = (run(place, *flaky, "--seed", seed) for seed in ("1", "2"))
    compared = place.run("compare", first, second, "--json")
    assert compared.code == 0, compared.err
    (pair,) = json.loads(compared.out)["pairs"]
    assert pair["cases"] == {"common": 108, "only_baseline": [], "only_candidate": []}
    assert {pair["new_cases"], pair["same_cases"]} <= {"equivalent", "too little evidence"}
    assert pair["differing"] == []
    assert place.run("aa", first).code == 0


def test_what_a_variant_changes_is_told_and_what_else_differs_is_refused(place: Any) -> None:
    careful = ("bls", "--model", "sim-careful", "--harness", "loop", "--harness", "codex")
    plain, guided = (run(place, *careful, "--variant", variant) for variant in ("plain", "guided"))
    compared = place.run("compare", plain, guided)
    assert compared.code == 0, compared.err
    assert "  May differ, being compared: tools: sha256:" in compared.out
    found = json.loads(place.run("compare", plain, guided, "--json").out)
    rates = {
        pair["candidate"]["harness"]: (
            pair["comparison"]["baseline"]["value"],
            pair["comparison"]["candidate"]["value"],
        )
        for pair in found["pairs"]
    }
    assert rates == {"loop": (1.0, 1.0), "codex": (0.6, 1.0)}
    assert {pair["axes"][0] for pair in found["pairs"]} == {"variant"}

    one_case = ("--harness", "loop", "--variant", "plain", "--filter", "case=cu-shelter-inflation")
    other = run(place, "bls-108", "--model", "sim-careful", *one_case)
    refused = place.run("compare", plain, other, "--harness", "loop")
    assert (refused.code, refused.out) == (2, "")
    assert "they differ in what was not meant to differ\n" in refused.err
    assert "  suite: bls against bls-108\n" in refused.err
    assert "--allow-different suite" in refused.err


def test_a_good_night_held_and_a_broken_one_regressed_once_it_is_confirmed(place: Any, tmp_path: Path) -> None:
    suite = Path(shutil.copytree(shipped_suites()["bls"].parent, tmp_path / "suite")) / "suite.yaml"
    night = (str(suite), "--harness", "direct", "--variant", "guided", "--repeats", "3")
    for _ in range(3):
        run(place, *night, "--label", "nightly")
    good = run(place, *night)
    gate = ("--baseline", "nightly", "--set", "least_nights=3")
    held = place.run("gate", good, *gate)
    assert held.code == 0, held.err
    assert held.out.splitlines()[0] == f"HELD: run {good}"

    server = suite.parent / "server.py"
    whole = server.read_text(encoding="utf-8")
    spoilt = whole.replace("casefold().split()", "casefold().split()[:0]")
    assert spoilt != whole
    server.write_text(spoilt, encoding="utf-8")
    broken = run(place, *night)
    fired = place.run("gate", broken, *gate)
    command = f"evalfarm gate {broken} --baseline nightly --set least_nights=3 --confirm"
    assert (fired.code, fired.out.splitlines()[3]) == (3, f"  {command}"), fired.err
    server.write_text(whole, encoding="utf-8")  # what is confirmed is the plugin that the run tested

    confirmed = place.run(*command.split()[1:], "--json")
    told = json.loads(confirmed.out)
    assert (confirmed.code, told["verdict"]) == (1, "regressed"), confirmed.err
    fresh = place.summary(told["confirm"])
    assert (fresh.label, fresh.planned) == (f"confirm/{broken}", 30)
    assert fresh.manifest.digests["files"] == place.summary(broken).manifest.digests["files"]
    named = {suspect["name"] for suspect in told["arms"][0]["night"]["suspects"] if suspect["named"]}
    assert named == {"unemployment-rate", "labor-force-participation", "nonfarm-payroll", "employment-ambiguous"}
    assert place.run("gate", broken, *gate).code == 1, "the confirm run is remembered"
