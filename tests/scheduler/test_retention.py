from hypothesis import given
from hypothesis import strategies as st

from evalfarm.contracts.run import Manifest
from evalfarm.contracts.schedule import Night, NightEnd
from scheduler.retention import DAY_S, Kept, baseline_runs, held_against, older, sorted_out
from tests.made_runs import LOOP, made_manifest

NOW_S = 1_000 * DAY_S


def manifest(run: str, age_days: float, label: str | None = None) -> Manifest:
    return made_manifest(run, [LOOP], created_at=NOW_S - age_days * DAY_S, label=label)


RUNS = (
    manifest("young", 3),
    manifest("old", 90, "nightly"),
    manifest("older", 100),
    manifest("oldest", 200, "nightly"),
)


def night(day: int) -> Night:
    return Night(schedule="shop", stamp=f"202611{day:02d}-0230", due_at=0.0, decided_at=0.0, decision="on time")


def end(day: int, *, accepted: bool = True, confirm: str | None = None) -> NightEnd:
    verdict = "held" if accepted else "regressed"
    return NightEnd.model_validate(
        {
            "schedule": "shop",
            "stamp": f"202611{day:02d}-0230",
            "verdict": verdict,
            "accepted": accepted,
            "confirm": confirm,
            "ended_at": 0.0,
        }
    )


def names(runs: list[Manifest]) -> list[str]:
    return [run.run for run in runs]


def test_what_is_old_enough_and_carries_a_label_is_asked_for_oldest_first() -> None:
    assert names(older(RUNS, 90 * DAY_S, (), NOW_S)) == ["oldest", "older", "old"]
    assert names(older(RUNS, 90 * DAY_S, ("nightly",), NOW_S)) == ["oldest", "old"]
    assert names(older(RUNS, 0.0, ("weekly",), NOW_S)) == []


def test_a_schedule_s_last_accepted_nights_stay_and_so_do_those_between_them() -> None:
    nights = [night(day) for day in range(1, 7)]
    ends = {one.stamp: end(day) for day, one in enumerate(nights[:5], start=1)}
    ends |= {nights[3].stamp: end(4, accepted=False, confirm="shop-20261104-0230-confirm")}
    assert baseline_runs(nights, ends, 2) == {
        "shop-20261103-0230",
        "shop-20261104-0230",
        "shop-20261104-0230-confirm",
        "shop-20261105-0230",
        "shop-20261106-0230",
    }


def test_a_schedule_without_an_accepted_night_keeps_all_of_them() -> None:
    nights = [night(1), night(2)]
    assert baseline_runs(nights, {nights[0].stamp: end(1, accepted=False)}, 10) == {night(1).run, night(2).run}


def test_a_baseline_what_was_named_and_what_has_not_ended_stay() -> None:
    going, staying = sorted_out(RUNS, {"older": "it is a baseline"}, {"nightly"}, {"young"})
    assert going == []
    assert staying == [
        Kept("young", "it has not ended"),
        Kept("old", "it was named to be kept"),
        Kept("older", "it is a baseline"),
        Kept("oldest", "it was named to be kept"),
    ]
    assert sorted_out(RUNS, {}, {"old"}, set())[0] == ["young", "older", "oldest"]


def test_what_a_run_that_stays_was_held_against_stays_and_so_does_the_last_baseline_of_a_suite() -> None:
    verdicts = {"young": ("older",), "older": ("oldest",)}
    assert held_against(RUNS, verdicts, {"older", "oldest"}) == {"older"}
    assert held_against(RUNS, verdicts, {"oldest"}) == {"older", "oldest"}
    assert held_against(RUNS, verdicts, set(names(list(RUNS)))) == {"older"}
    other = made_manifest("elsewhere", [LOOP], created_at=0.0, suite="another")
    assert held_against((*RUNS, other), verdicts | {"elsewhere": ("old",)}, {"elsewhere", "oldest", "older"}) == {
        "older",
        "old",
    }
    assert held_against(RUNS, {}, ()) == frozenset()


few = st.sets(st.sampled_from(names(list(RUNS))))


@given(few, few, few)
def test_every_run_goes_or_stays_and_none_that_is_protected_goes(
    baselines: set[str], kept: set[str], unfinished: set[str]
) -> None:
    going, staying = sorted_out(RUNS, dict.fromkeys(baselines, "it is a baseline"), kept, unfinished)
    assert sorted([*going, *(one.run for one in staying)]) == sorted(names(list(RUNS)))
    assert not set(going) & (baselines | kept | unfinished)
