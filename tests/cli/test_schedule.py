import json
from pathlib import Path
from typing import Any

import pytest

from evalfarm.cli.nights.schedule import show_night
from evalfarm.contracts.schedule import Night, NightEnd
from evalfarm.nights import Nights
from evalfarm.settings import load_settings
from evalfarm.store import Store

GOOD = """\
[schedules.a]
suite = "bls"
models = ["sim-careful"]
when = { cron = "0 3 29 2 *", time_zone = "Europe/Vienna" }

[schedules.b]
suite = "bls"
harnesses = ["direct"]
when = { cron = "30 2 * * *" }
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    return (tmp_path / "evalfarm.toml").write_text


def test_schedules_are_listed_with_their_next_times(evalfarm: Any, write: Any) -> None:
    write(GOOD)
    listed = json.loads(evalfarm("schedule", "list", "--json").out)
    assert {name: (told["suite"], told["nights"]) for name, told in listed.items()} == {
        "a": ("bls", []),
        "b": ("bls", []),
    }
    times = json.loads(evalfarm("schedule", "next", "--json").out)
    assert [len(times[name]) for name in ("a", "b")] == [1, 5]
    assert times["a"][0].endswith("-02-29 03:00+01:00")
    assert evalfarm("schedule", "next", "b").out.startswith("b: ")


def test_a_night_is_listed_with_its_run_and_as_much_of_its_reasons_as_fits(evalfarm: Any, write: Any) -> None:
    write(GOOD)
    nights = Nights(Store(load_settings().store_url).objects)
    for day, verdict, run in (("29", "held", "on time"), ("30", "regressed", "on time"), ("31", "skipped", "skipped")):
        said = {"schedule": "b", "stamp": f"202610{day}-0230"}
        night = {"due_at": float(day), "decided_at": 0.0, "decision": run, "why": "one still ran"}
        nights.put(Night.model_validate(said | night))
        nights.put_end(NightEnd.model_validate(said | {"verdict": verdict, "reasons": ["x" * 200], "ended_at": 0.0}))
    listed = " ".join(evalfarm("schedule", "list").out.split())
    assert "b-20261029-0230" in listed
    assert "b-20261030-0230: x" in listed
    assert "b-20261031-0230" not in listed
    assert "80 more" in listed


def test_a_file_elsewhere_is_named_by_the_environment(
    evalfarm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "farm.toml").write_text(GOOD, encoding="utf-8")
    monkeypatch.setenv("EVALFARM_FILE", "farm.toml")
    assert evalfarm("schedule", "list").code == 0


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('suite = "bls"\nmodels', 'suite = "blss"\nmodels', "evalfarm.toml:1: schedules.a: no suite 'blss'"),
        ('models = ["sim-careful"]\n', "", "evalfarm.toml:1: schedules.a: no model was named"),
        (
            'harnesses = ["direct"]',
            'variants = ["plian"]',
            "evalfarm.toml:6: schedules.b: suite 'bls' has no variant 'plian'",
        ),
        ("30 2 * * *", "30 25 * * *", "evalfarm.toml:9: schedules.b.when.cron: '25' is no hour: it goes from 0 to 23"),
    ],
)
def test_a_schedule_that_cannot_run_is_refused_with_its_line(
    evalfarm: Any, write: Any, tmp_path: Path, old: str, new: str, told: str
) -> None:
    write(GOOD.replace(old, new))
    for words in (("schedule", "list"), ("beat",)):
        ended = evalfarm(*words)
        assert (ended.code, ended.out) == (2, "")
        assert f"{tmp_path}/{told}" in ended.err


def test_a_rule_with_a_typo_is_refused_with_both_lines(evalfarm: Any, write: Any, tmp_path: Path) -> None:
    write(GOOD + '[schedules.b.baseline]\nrule = "gate.toml"\n')
    (tmp_path / "gate.toml").write_text("[gate]\nscreen = 0.1\nleast_nihgts = 3\n", encoding="utf-8")
    ended = evalfarm("schedule", "list")
    assert ended.code == 2
    told = f"{tmp_path}/gate.toml:3, [gate]: the rule has no number 'least_nihgts'"
    assert f"{tmp_path}/evalfarm.toml:6: schedules.b: {told}" in ended.err


@pytest.mark.parametrize(
    ("verdict", "code"),
    [("held", 0), ("improved", 0), ("regressed", 1), ("inconclusive", 3), ("skipped", 3), ("failed", 4)],
)
def test_a_night_ends_with_the_exit_code_of_its_verdict(
    verdict: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {"schedule": "b", "stamp": "20261130-0230"}
    night = Night.model_validate(said | {"due_at": 0.0, "decided_at": 0.0, "decision": "on time"})
    end = NightEnd.model_validate(said | {"verdict": verdict, "reasons": ["so it was"], "ended_at": 0.0})
    assert show_night(night, end, as_json=False) == code
    assert capsys.readouterr().out.startswith(f"{verdict.upper()}: b, night of 2026-11-30 02:30\nso it was\n")
    assert show_night(night, end, as_json=True) == code
    assert json.loads(capsys.readouterr().out)["verdict"] == verdict


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("list", "c"), "has no schedule 'c'\n\nhint: its schedules: a, b"),
        (("run",), "there is nothing to run\n\nhint: name a schedule: evalfarm schedule run NAME"),
    ],
)
def test_a_name_is_needed_and_must_be_known(evalfarm: Any, write: Any, words: tuple[str, ...], told: str) -> None:
    write(GOOD)
    ended = evalfarm("schedule", *words)
    assert (ended.code, told in ended.err) == (2, True)


def test_without_a_file_it_is_said_where_one_was_looked_for(evalfarm: Any, tmp_path: Path) -> None:
    for command in (("schedule", "list"), ("beat",)):
        ended = evalfarm(*command)
        assert ended.code == 2
        assert f"Error: there is no {tmp_path}/evalfarm.toml" in ended.err
