"""However many workers there are and wherever they were started: the same seed, the same labels."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from evalfarm.embedded import embedded_redis

pytestmark = pytest.mark.slow

FLAKY = ("run", "bls", "--model", "sim-flaky", "--variant", "guided", "--repeats", "3")
Seen = dict[tuple[str, str, int], tuple[str, tuple[str, ...]]]


def labels(place: Any, *words: str) -> Seen:
    """How each trial was judged, by what it is: case, harness, repeat."""
    ended = place.run(*FLAKY, *words)
    assert ended.code == 0, ended.err
    run = ended.err.split()[1].rstrip(":")
    results = place.results(run).values()
    assert len(results) == place.summary(run).planned
    return {
        (result.trial.case, result.trial.arm.harness, result.trial.repeat): (result.verdict, result.reasons)
        for result in results
    }


def at(level: str, seen: Seen) -> dict[tuple[str, int], str]:
    """The verdicts at one level, by case and repeat."""
    return {(case, repeat): verdict for (case, harness, repeat), (verdict, _) in seen.items() if harness == level}


@contextmanager
def workers(*places: Any) -> Iterator[None]:
    """A worker started by hand in each place."""
    started = [place.start("worker", "--slots", "1") for place in places]
    try:
        yield
    finally:
        for worker in started:
            worker.process.terminate()
        for worker in started:
            assert worker.end().code == 0


@pytest.fixture(scope="module")
def by_one(shared_place: Any) -> Seen:
    return labels(shared_place, "--workers", "1")


def test_a_flaky_model_slips_on_the_same_repeats_at_both_levels(by_one: Seen) -> None:
    assert set(at("direct", by_one).values()) == {"passed"}
    assert set(at("loop", by_one).values()) == {"passed", "failed"}
    assert at("loop", by_one) == at("codex", by_one)


def test_two_workers_judge_every_trial_as_one_does(by_one: Seen, shared_place: Any) -> None:
    assert labels(shared_place, "--workers", "2") == by_one


def test_workers_started_elsewhere_judge_every_trial_as_one_does(
    by_one: Seen, another_place: Callable[..., Any], tmp_path: Any
) -> None:
    with embedded_redis(tmp_path / "shared") as url:
        shared = {"EVALFARM_REDIS_URL": url, "EVALFARM_STORE_URL": f"file://{tmp_path}/shared/store"}
        user, first, second = (another_place(name, **shared) for name in ("user", "first", "second"))
        with workers(first, second):
            assert labels(user) == by_one
        assert not (user.home / "cells").exists()
        assert (first.home / "suites").is_dir()
        assert (second.home / "suites").is_dir()
        for each in (user, first, second):
            each.falls_quiet()


def test_another_seed_draws_other_slips(by_one: Seen, shared_place: Any) -> None:
    other = at("loop", labels(shared_place, "--harness", "loop", "--seed", "1", "--workers", "1"))
    assert other.keys() == at("loop", by_one).keys()
    assert other != at("loop", by_one)


def test_commands_that_start_at_the_same_moment_have_a_run_each(place: Any) -> None:
    words = ("run", "bls", "--harness", "direct", "--variant", "guided", "--workers", "1")
    started = [place.start(*words) for _ in range(3)]
    runs = {command.run_id() for command in started}
    assert [command.end().code for command in started] == [0, 0, 0]
    assert len(runs) == 3
    for run in runs:
        summary = place.summary(run)
        assert (summary.planned, summary.passed, summary.attempts) == (5, 5, 5)
    assert place.store.names_of_runs() == runs
    place.falls_quiet()
