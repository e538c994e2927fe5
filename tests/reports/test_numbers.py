import pytest

from evalfarm.contracts.figures import Bounds, Measure
from evalfarm.contracts.verdict import Rate
from evalfarm.reports import numbers


@pytest.mark.parametrize(
    ("share", "written"),
    [
        (None, "n/a"),
        (0.0, "0.0 %"),
        (0.0001, "0.1 %"),
        (0.6, "60.0 %"),
        (2 / 3, "66.7 %"),
        (2999 / 3000, "99.9 %"),
        (1.0, "100.0 %"),
    ],
)
def test_a_share_is_all_or_none_only_when_it_is(share: float | None, written: str) -> None:
    assert numbers.percent(share) == written


@pytest.mark.parametrize(
    ("rate", "limits", "whole"),
    [
        (Rate(value=None, low=None, high=None), "n/a", "n/a"),
        (Rate(value=0.6, low=0.2309, high=0.8824), "[23.1, 88.2]", "60.0 % [23.1, 88.2]"),
        (Rate(value=1.0, low=0.56552, high=1.0), "[56.6, 100.0]", "100.0 % [56.6, 100.0]"),
        (Rate(value=0.9999, low=0.9996, high=1.0), "[99.9, 100.0]", "99.9 % [99.9, 100.0]"),
    ],
)
def test_a_rate_is_written_with_its_limits(rate: Rate, limits: str, whole: str) -> None:
    assert (numbers.interval(rate), numbers.rate_with_interval(rate)) == (limits, whole)


@pytest.mark.parametrize(
    ("rate", "written"),
    [
        (Rate(value=None, low=None, high=None), "n/a"),
        (Rate(value=0.6, low=0.2309, high=0.8824), "60.0 [23.1, 88.2]"),
    ],
)
def test_under_a_head_with_the_sign_a_rate_needs_none(rate: Rate, written: str) -> None:
    assert numbers.bare_rate(rate) == written


@pytest.mark.parametrize(
    ("worst", "best", "low", "high", "written"),
    [
        (None, None, None, None, "n/a"),
        (0.6, 0.6, 0.23, 0.88, "–"),
        (0.7333, 0.8667, 0.442, 0.971, "73.3 … 86.7 [44.2, 97.1]"),
    ],
)
def test_what_undecided_trials_allow_is_written_with_outer_limits(
    worst: float | None, best: float | None, low: float | None, high: float | None, written: str
) -> None:
    assert numbers.bounds(Bounds(worst=worst, best=best, low=low, high=high)) == written


@pytest.mark.parametrize(
    ("value", "low", "high", "written"),
    [
        (None, None, None, "n/a"),
        (None, 300.0, None, "over 300"),
        (1.114, None, None, "1.11"),
        (1.114, 0.9, None, "1.11 [0.900, ?]"),
        (1.114, None, 12.34, "1.11 [?, 12.3]"),
        (1.114, 0.9, 12.34, "1.11 [0.900, 12.3]"),
    ],
)
def test_an_open_end_is_a_question_and_no_number(
    value: float | None, low: float | None, high: float | None, written: str
) -> None:
    assert numbers.measure(Measure(value=value, low=low, high=high), numbers.seconds) == written


@pytest.mark.parametrize(
    ("p", "written"), [(None, "n/a"), (0.7376, "0.74"), (0.00312, "0.0031"), (1e-9, "<0.0001"), (1.0, "1")]
)
def test_a_probability_is_never_nothing(p: float | None, written: str) -> None:
    assert numbers.probability(p) == written


@pytest.mark.parametrize(("share", "written"), [(None, "n/a"), (0.02564, "2.6"), (-0.5, "-50.0")])
def test_points_are_hundredths(share: float | None, written: str) -> None:
    assert numbers.points(share) == written


@pytest.mark.parametrize(
    ("mean", "written"), [(None, "n/a"), (0.0, "0.0"), (2.333, "2.3"), (99.94, "99.9"), (1500.6, "1,501")]
)
def test_a_missing_mean_is_no_zero(mean: float | None, written: str) -> None:
    assert numbers.per_question(mean) == written


@pytest.mark.parametrize(
    ("duration_s", "written"),
    [(None, "n/a"), (0.0042, "0.004"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (4321.0, "4,321")],
)
def test_seconds_have_three_figures(duration_s: float | None, written: str) -> None:
    assert numbers.seconds(duration_s) == written


@pytest.mark.parametrize(
    ("usd", "written"),
    [
        (None, "unknown"),
        (0.0, "$0.00"),
        (0.00001, "<$0.0001"),
        (0.0042, "$0.0042"),
        (0.01, "$0.01"),
        (1234.5, "$1,234.50"),
    ],
)
def test_an_unknown_cost_is_no_zero_and_a_small_one_neither(usd: float | None, written: str) -> None:
    assert numbers.cost(usd) == written


@pytest.mark.parametrize(("count", "written"), [(None, "n/a"), (0, "0"), (1024, "1,024")])
def test_tokens(count: int | None, written: str) -> None:
    assert numbers.tokens(count) == written


def test_a_moment_is_written_in_utc() -> None:
    assert numbers.moment(1769846709.9) == "2026-01-31 08:05:09 UTC"


@pytest.mark.parametrize(("count", "written"), [(0, "0 cases"), (1, "1 case"), (1200, "1,200 cases")])
def test_a_noun_agrees_with_its_count(count: int, written: str) -> None:
    assert numbers.plural(count, "case") == written
