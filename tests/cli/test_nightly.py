"""Thirty nights of a schedule with a fake clock: what the store, the receivers and the baseline hold in the end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalfarm.analysis.judgement.notes import ArmNote
from evalfarm.analysis.summary.aggregate import summarize
from evalfarm.cli.nights.nightly import Watch, confirm_name
from evalfarm.contracts.run import Arm, Plan, Trial
from evalfarm.contracts.schedule import Night
from evalfarm.contracts.suite import Case, Plugin, Server, Suite
from evalfarm.contracts.verdict import Label, Result, Verdict
from evalfarm.errors import StoreUnavailable, UsageError
from evalfarm.nights import Nights
from evalfarm.outcomes import Outcomes
from evalfarm.store import Store
from scheduler.nightly.file import Declared, read_schedules
from tests.made_runs import LOOP, made_manifest

DAY_S = 86_400.0
#: A minute after 02:30 in Vienna on 1 March 2028: the month has the change of the clocks in it.
FIRST_S = datetime(2028, 3, 1, 1, 31, tzinfo=UTC).timestamp()
CASES = tuple(f"case-{at}" for at in range(40))
SUITE = Suite(
    suite="small",
    version="1",
    plugin=Plugin(name="p"),
    server=Server(python="server.py"),
    cases=tuple(Case(id=case, turns=("?",)) for case in CASES),
)
ARM = Arm(model="m", harness="loop", variant="plain")
FILE = """\
[schedules.shop]
suite = "small"
models = ["m"]
repeats = 3
when = { cron = "30 2 * * *", time_zone = "Europe/Vienna" }
notify = ["team"]

[schedules.shop.baseline]
confirm = true

[receivers.team]
webhook_env = "TEAM_WEBHOOK"
"""


@dataclass
class Weather:
    """What the nights will be like: a run is there and sealed as soon as it is opened."""

    store: Store
    night: str = "good"
    opened: list[str] = field(default_factory=list)

    def open_night(self, declared: Declared, night: Night, now_s: float) -> None:
        if self.night == "broken":
            raise UsageError("suite 'small' is gone")
        if self.night == "no redis":
            raise StoreUnavailable("the store is away")
        self._night(night.run, now_s)

    def open_confirm(self, run: str, arms: Sequence[ArmNote], repeats: int, name: str) -> None:
        assert [(arm.model, arm.harness, arm.variant) for arm in arms] == [("m", "loop", "plain")]
        self._seal(name, 0.0, repeats, lambda case, repeat: self._fails(case, repeat) and case < 12)

    def _night(self, run: str, now_s: float) -> None:
        self._seal(run, now_s, 3, lambda case, repeat: self._fails(case, repeat) or self._shakes(run, case, repeat))

    def _fails(self, case: int, _repeat: int) -> bool:
        return self.night == "regressed" and case < 12

    @staticmethod
    def _shakes(run: str, case: int, repeat: int) -> bool:
        """One case in eight misses once, every night others."""
        return repeat == 0 and case % 8 == int(run[-7:-5]) % 8

    def _seal(self, run: str, now_s: float, repeats: int, fails: Callable[[int, int], bool]) -> None:
        self.opened.append(run)
        plan = Plan(run=run, suite=SUITE, arms=(ARM,), cases=CASES, repeats=repeats)
        manifest = made_manifest(run, [LOOP], created_at=now_s, label="shop", planned=plan.size, repeats=repeats)
        results = [self._result(plan.trial(index), fails) for index in range(plan.size)]
        summary = summarize(manifest, plan, results, attempts=plan.size, finished=True)
        self.store.put_plan(plan)
        self.store.put_manifest(manifest)
        self.store.put_summary(summary)

    def _result(self, trial: Trial, fails: Callable[[int, int], bool]) -> Result:
        if self.night == "outage":
            return Result(trial=trial, attempt=3, outcome="infra_failed", verdict="infra_failed", failure="away")
        failed = fails(CASES.index(trial.case), trial.repeat)
        label = Label(grader="tool_route", version="1", value="FAIL" if failed else "PASS")
        verdict: Verdict = "failed" if failed else "passed"
        return Result(trial=trial, attempt=1, outcome="finished", verdict=verdict, labels=(label,))


@dataclass
class Life:
    """A schedule that is looked at, with a clock that a test sets."""

    watch: Watch
    weather: Weather
    now: list[float]
    alerts: list[str]
    said: list[str]

    def look(self, at_s: float, weather: str = "good", times: int = 3) -> None:
        """Look so many times around a moment."""
        self.weather.night = weather
        for _ in range(times):
            self.now[0] = at_s = at_s + 1.0
            self.watch.look()

    @property
    def ends(self) -> dict[str, tuple[str, bool]]:
        """The verdict on each night, and whether later ones are held against it."""
        nights = Nights(self.weather.store.objects)
        return {stamp: (end.verdict, end.accepted) for stamp, end in nights.ends(nights.of("shop", 100)).items()}


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Life:
    monkeypatch.setenv("TEAM_WEBHOOK", "https://hooks.example/secret")
    (tmp_path / "evalfarm.toml").write_text(FILE, encoding="utf-8")
    now, alerts, said = [0.0], list[str](), list[str]()

    def post(_url: str, document: dict[str, Any]) -> None:
        alerts.append(document["text"])

    weather = Weather(Store("memory://"))
    declared = read_schedules(tmp_path / "evalfarm.toml")
    watch = Watch(weather.store, declared, weather, said.append, lambda: now[0], post)
    return Life(watch, weather, now, alerts, said)


def test_thirty_nights_leave_the_right_record_the_right_alerts_and_the_right_baseline(life: Life) -> None:
    bad = {12: "regressed", 17: "outage"}
    life.look(FIRST_S - DAY_S / 2)  # the schedule is new: nothing before it is due
    for day in range(30):
        at_s = FIRST_S + day * DAY_S - (3600.0 if day >= 26 else 0.0)  # the clocks went forward on the 26th, over 02:30
        if day == 20:
            at_s += 5 * 3600.0  # nobody was there until the morning
        life.look(at_s, bad.get(day, "good"))
    stamps = [f"202803{day:02d}-0230" for day in range(1, 31)]
    told = {stamp: ("held", True) for stamp in stamps}
    told |= {stamp: ("inconclusive", True) for stamp in stamps[:5]}  # until there are five nights to hold it against
    told |= {stamps[12]: ("regressed", False), stamps[17]: ("inconclusive", False)}
    assert life.ends == told
    runs = [f"shop-{stamp}" for stamp in stamps]
    assert life.weather.opened == [*runs[:13], confirm_name(runs[12]), *runs[13:]]
    assert life.alerts == [
        *(f"INCONCLUSIVE: shop, night of 2028-03-0{day} 02:30" for day in range(1, 6)),
        "REGRESSED: shop, night of 2028-03-13 02:30",
        "INCONCLUSIVE: shop, night of 2028-03-18 02:30",
    ]
    nights = Nights(life.weather.store.objects)
    known = nights.of("shop", 100)
    assert [night.stamp for night in known if night.decision == "late"] == [stamps[20]]
    bad_night, last = (nights.ends(known)[stamps[day]] for day in (12, 29))
    assert "; behind it: case-" in bad_night.reasons[0]
    assert last.baselines == tuple(run for run in runs[17:29] if run != runs[17])[-10:]
    outcomes = Outcomes(life.weather.store.objects)
    assert [len(outcomes.gates(run)) for run in runs] == [0, *[1] * 29]


TWO_ZONES = """\
[schedules.vienna]
suite = "small"
when = { cron = "30 2 * * *", time_zone = "Europe/Vienna" }

[schedules.new-york]
suite = "small"
when = { cron = "30 1 * * *", time_zone = "America/New_York" }
"""


@pytest.mark.parametrize(
    ("first", "vienna", "new_york"),
    [
        ("2028-02-28", ["28 01:30", "29 01:30", "01 01:30"], ["28 06:30", "29 06:30", "01 06:30"]),
        # 02:30 does not exist in Vienna on the 29th, and New York is a while ahead with its summer.
        ("2026-03-28", ["28 01:30", "29 01:30", "30 00:30"], ["28 05:30", "29 05:30", "30 05:30"]),
        ("2026-03-07", ["07 01:30", "08 01:30", "09 01:30"], ["07 06:30", "08 06:30", "09 05:30"]),
        # 02:30 is there twice in Vienna on the 25th of October, 01:30 in New York on the 1st of November.
        ("2026-10-24", ["24 00:30", "25 00:30", "26 01:30"], ["24 05:30", "25 05:30", "26 05:30"]),
        ("2026-10-31", ["31 01:30", "01 01:30", "02 01:30"], ["31 05:30", "01 05:30", "02 06:30"]),
    ],
)
def test_each_night_of_two_zones_starts_once_whatever_their_clocks_do(
    life: Life, tmp_path: Path, first: str, vienna: list[str], new_york: list[str]
) -> None:
    (tmp_path / "evalfarm.toml").write_text(TWO_ZONES, encoding="utf-8")
    weather = life.weather
    watch = Watch(
        weather.store, read_schedules(tmp_path / "evalfarm.toml"), weather, life.said.append, lambda: life.now[0]
    )
    began_s = datetime.fromisoformat(f"{first}T00:00+00:00").timestamp()
    for minutes in range(0, 3 * 24 * 60, 10):
        life.now[0] = began_s + minutes * 60.0
        watch.look()
    nights = {name: watch.nights.of(name, 10) for name in ("vienna", "new-york")}
    started = {
        name: [datetime.fromtimestamp(night.decided_at, UTC).strftime("%d %H:%M") for night in known]
        for name, known in nights.items()
    }
    assert started == {"vienna": vienna, "new-york": new_york}
    runs = [night.run for known in nights.values() for night in known]
    assert sorted(weather.opened) == sorted(runs)
    assert len(set(runs)) == 6


def test_two_who_look_at_once_start_and_tell_each_night_once(life: Life) -> None:
    twin = Watch(
        life.weather.store, life.watch.declared, life.weather, life.said.append, life.watch.clock, life.watch.post
    )
    for day in (-0.01, 0, 1):
        life.now[0] = FIRST_S + day * DAY_S
        # Both decide before either goes on, and both go on before either tells.
        for step in ("decide", "advance", "tell"):
            for watch in (life.watch, twin):
                getattr(watch, step)("shop")
    assert life.weather.opened == ["shop-20280301-0230", "shop-20280302-0230"]
    assert life.alerts == [f"INCONCLUSIVE: shop, night of 2028-03-0{day} 02:30" for day in (1, 2)]


def test_of_two_who_judge_a_night_at_once_one_record_is_kept(life: Life) -> None:
    life.look(FIRST_S - 120.0)
    for day in range(6):
        life.look(FIRST_S + day * DAY_S)
    life.now[0] = FIRST_S + 6 * DAY_S
    life.watch.decide("shop")
    (night,) = life.watch.nights.of("shop", 1)
    life.weather.open_night(life.watch.declared, night, life.now[0])
    first_in = [life.watch]

    def clock() -> float:
        """The time that the slower one takes down, while the other sees the night through."""
        if first_in:
            first_in.pop().advance("shop")
            life.now[0] += 10.0
        return life.now[0]

    slower = Watch(life.weather.store, life.watch.declared, life.weather, life.said.append, clock, life.watch.post)
    assert slower.advance("shop") == ()
    outcomes = Outcomes(life.weather.store.objects)
    records = [outcomes.gate(night.run, name) for name in outcomes.gates(night.run)]
    assert [(record.at, record.verdict) for record in records if record] == [(FIRST_S + 6 * DAY_S, "held")]


def test_a_gate_that_a_night_left_is_the_one_that_is_told(life: Life, tmp_path: Path) -> None:
    life.look(FIRST_S - 120.0)
    for day in range(8):
        life.look(FIRST_S + day * DAY_S, "regressed" if day == 7 else "good")
    nights = Nights(life.weather.store.objects)
    night = nights.of("shop", 1)[0]
    report, xml = nights.paper(night, "report.md") or "", nights.paper(night, "junit.xml") or ""
    assert report.startswith("# REGRESSED: shop, night of 2028-03-08 02:30\n")
    assert "## Gate" in report
    assert '<testsuite name="gate" tests="1" failures="1"' in xml


def test_a_night_that_cannot_start_fails_and_is_told_of(life: Life) -> None:
    life.look(FIRST_S - 120.0)
    life.look(FIRST_S, "broken")
    assert life.ends == {"20280301-0230": ("failed", False)}
    assert life.alerts == ["FAILED: shop, night of 2028-03-01 02:30"]
    assert life.weather.opened == []


def test_a_night_that_infrastructure_keeps_from_starting_is_tried_again_for_an_hour(life: Life) -> None:
    life.look(FIRST_S - 120.0)
    life.look(FIRST_S, "no redis")
    assert life.ends == {}
    life.look(FIRST_S + 600.0)
    assert life.ends == {"20280301-0230": ("inconclusive", True)}
    life.look(FIRST_S + DAY_S, "no redis")
    life.look(FIRST_S + DAY_S + 3_700.0, "no redis")
    assert life.ends["20280302-0230"] == ("failed", False)


def test_a_rule_with_a_mistake_in_it_is_told_and_judges_nothing(life: Life, tmp_path: Path) -> None:
    (tmp_path / "gate.toml").write_text("[gate]\nleast_nihgts = 3\n", encoding="utf-8")
    (tmp_path / "evalfarm.toml").write_text(FILE.replace("confirm = true", 'rule = "gate.toml"'), encoding="utf-8")
    declared = read_schedules(tmp_path / "evalfarm.toml")
    watch = Watch(life.weather.store, declared, life.weather, life.said.append, lambda: life.now[0])
    life.now[0] = FIRST_S - 120.0
    watch.look()
    life.now[0] = FIRST_S
    watch.look()
    (end,) = Nights(life.weather.store.objects).ends(watch.nights.of("shop", 1)).values()
    assert (end.verdict, end.accepted) == ("inconclusive", False)
    assert end.reasons == (f"{tmp_path}/gate.toml:2, [gate]: the rule has no number 'least_nihgts'",)
