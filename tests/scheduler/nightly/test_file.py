from collections.abc import Callable
from pathlib import Path

import pytest

from evalfarm.contracts.schedule import BaselineRule, Receiver, Schedule, When
from evalfarm.errors import UnknownName, UsageError
from scheduler.nightly.file import Declared, read_schedules

Declare = Callable[..., Declared]


def test_a_file_is_read_as_what_it_says(declare: Declare) -> None:
    declared = declare(
        """
        [schedules.shop]
        suite = "suites/shop"
        models = ["gpt-5-mini"]
        harnesses = ["codex"]
        repeats = 5
        max_cost_usd = 20
        when = { cron = "0 3 * * mon-fri", time_zone = "America/New_York" }
        missed = "skip"
        notify = ["team"]

        [schedules.shop.baseline]
        rule = "gate.toml"
        confirm = true
        since = 2026-11-01

        [receivers.team]
        webhook_env = "TEAM_WEBHOOK"
        """
    )
    assert declared.said.schedules == {
        "shop": Schedule(
            suite="suites/shop",
            models=("gpt-5-mini",),
            harnesses=("codex",),
            repeats=5,
            max_cost_usd=20.0,
            when=When(cron="0 3 * * mon-fri", time_zone="America/New_York"),
            missed="skip",
            notify=("team",),
            baseline=BaselineRule.model_validate({"rule": "gate.toml", "confirm": True, "since": "2026-11-01"}),
        )
    }
    assert declared.said.receivers == {"team": Receiver(webhook_env="TEAM_WEBHOOK")}


GOOD = '[schedules.a]\nsuite = "bls"\nwhen = { cron = "30 2 * * *" }\n'


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ('[schedules.a]\nsuite = "bls"\n', 1, "schedules.a.when: Field required"),
        (GOOD + "repeat = 3\n", 4, "schedules.a.repeat: there is no such setting"),
        (GOOD + "repeats = 0\n", 4, "schedules.a.repeats: Input should be greater than or equal to 1"),
        (GOOD + 'harnesses = ["lop"]\n', 4, "schedules.a.harnesses.0: Input should be 'direct', 'loop' or 'codex'"),
        (
            '[schedules.a]\nsuite = "bls"\n[schedules.a.when]\ncron = "99 2 * * *"\n',
            4,
            "schedules.a.when.cron: '99' is no minute: it goes from 0 to 59",
        ),
        (
            '[schedules.a]\nsuite = "bls"\n\nwhen = { cron = "1 2 * * *", time_zone = "Vienna" }\n',
            4,
            "schedules.a.when.time_zone: there is no time zone 'Vienna': write one as in Europe/Vienna, or UTC",
        ),
        (GOOD + 'notify = ["team"]\n', 4, "schedules.a.notify: there is no [receivers.team]"),
        (GOOD + "[receivers.team]\n", 4, "receivers.team: give exactly one of webhook_env and folder"),
        (GOOD + "[schedule.b]\n", 4, "schedule: there is no such setting"),
    ],
)
def test_a_mistake_is_told_with_its_file_and_line(
    declare: Declare, tmp_path: Path, text: str, line: int, told: str
) -> None:
    with pytest.raises(UsageError) as error:
        declare(text)
    assert error.value.message == f"{tmp_path}/evalfarm.toml:{line}: {told}"


def test_the_address_of_a_webhook_is_not_taken_and_not_shown(declare: Declare) -> None:
    with pytest.raises(UsageError) as error:
        declare(GOOD + '[receivers.team]\nwebhook_env = "https://hooks.example/T0/secret"\n')
    assert error.value.message.endswith(
        "evalfarm.toml:5: receivers.team.webhook_env: this takes the name of an environment variable that holds the "
        "address, never the address itself"
    )


def test_text_that_is_no_toml_is_refused_with_its_line(declare: Declare) -> None:
    with pytest.raises(UsageError, match=r"evalfarm\.toml is no TOML: .*line 1"):
        declare("[schedules.a\n")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        read_schedules(tmp_path / "none.toml")
    assert error.value.message == f"there is no {tmp_path}/none.toml"


def test_a_schedule_that_is_not_there_is_named_with_those_that_are(declare: Declare) -> None:
    with pytest.raises(UnknownName) as error:
        declare(GOOD).schedule("b")
    assert (error.value.message.endswith("has no schedule 'b'"), error.value.hint) == (True, "its schedules: a")


def test_a_suite_beside_the_file_goes_before_a_shipped_one(declare: Declare, tmp_path: Path) -> None:
    declared = declare(GOOD)
    assert declared.suite(declared.schedule("a")) == "bls"
    (tmp_path / "bls").mkdir()
    assert declared.suite(declared.schedule("a")) == str(tmp_path / "bls")
