import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.stats import effective_cases, flip_rate, pass_rate, quantile, wilson
from evalfarm.contracts.verdict import FlipRate, Rate

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))["cases"]
Z = 1.959963984540054


@st.composite
def cases(draw: st.DrawFn, *, most: int = 12) -> tuple[list[int], list[int]]:
    """Passes and decided trials of up to 12 cases, some of them without a decided trial."""
    decided = draw(st.lists(st.integers(0, most), max_size=12))
    return [draw(st.integers(0, r)) for r in decided], decided


def golden(name: str) -> tuple[list[int], list[int], dict[str, float]]:
    inputs = GOLDEN[name]["inputs"]
    repeats = inputs["R"] if isinstance(inputs["R"], list) else [inputs["R"]] * len(inputs["c"])
    return inputs["c"], repeats, GOLDEN[name]["expected"]


def near(value: float) -> Any:
    return pytest.approx(value, abs=1e-8, rel=0)


@pytest.mark.parametrize("name", ["wilson_17_20", "wilson_5_5", "wilson_0_5", "wilson_23_108"])
def test_wilson_gives_the_golden_limits(name: str) -> None:
    k, n = GOLDEN[name]["inputs"]["k"], GOLDEN[name]["inputs"]["n"]
    assert wilson(k / n, n, Z) == (near(GOLDEN[name]["expected"]["lo"]), near(GOLDEN[name]["expected"]["hi"]))


@pytest.mark.parametrize("name", ["wne_small", "wne_allpass", "wne_unanimous", "wne_capped", "wne_unequalR"])
def test_the_pass_rate_has_the_golden_interval(name: str) -> None:
    passes, decided, expected = golden(name)
    rate = pass_rate(passes, decided)
    assert (rate.value, rate.low, rate.high) == (near(expected["mean"]), near(expected["lo"]), near(expected["hi"]))


@pytest.mark.parametrize("name", ["wne_small", "wne_capped", "wne_unequalR", "published_fixture"])
def test_the_effective_number_of_cases_is_the_golden_one(name: str) -> None:
    passes, decided, expected = golden(name)
    n_eff = effective_cases(np.asarray(passes, dtype=float), np.asarray(decided, dtype=float))
    assert n_eff == near(expected["n_eff"])


def test_the_published_example_of_108_cases_is_reproduced() -> None:
    passes, decided, expected = golden("published_fixture")
    rate, flips = pass_rate(passes, decided), flip_rate(passes, decided)
    assert (rate.value, rate.low, rate.high) == (near(expected["pooled"]), near(expected["lo"]), near(expected["hi"]))
    assert (flips.value, flips.low, flips.high) == (
        near(expected["flip_obs"]),
        near(expected["flip_lo"]),
        near(expected["flip_hi"]),
    )
    assert (flips.flipped, flips.cases, flips.repeats) == (23, 108, 3)


@pytest.mark.parametrize("name", ["flip_small", "flip_rarefy"])
def test_the_observed_flip_rate_is_the_golden_one(name: str) -> None:
    passes, decided, expected = golden(name)
    assert flip_rate(passes, decided).value == near(expected["F_obs"])


def test_the_median_is_the_golden_one() -> None:
    inputs = GOLDEN["quantile_kg_p50"]["inputs"]
    latencies = [value for case in inputs["latency_cases_x_trials"] for value in case]
    assert quantile(latencies, inputs["q"]) == near(GOLDEN["quantile_kg_p50"]["expected"]["q_hat"])


def test_without_a_decided_trial_nothing_is_said() -> None:
    assert pass_rate([], []) == pass_rate([0, 0], [0, 0]) == Rate(value=None, low=None, high=None)
    assert flip_rate([], []) == FlipRate(value=None, low=None, high=None, flipped=0, cases=0, repeats=0)
    assert quantile([], 0.5) is None


def test_one_repeat_cannot_flip() -> None:
    assert flip_rate([1, 0], [1, 1]) == FlipRate(value=None, low=None, high=None, flipped=0, cases=0, repeats=1)


def test_only_repeated_cases_count_for_flips() -> None:
    flips = flip_rate([1, 1, 2, 0], [1, 2, 2, 0])
    assert (flips.flipped, flips.cases, flips.repeats, flips.value) == (1, 2, 2, 0.5)


def test_a_single_case_has_the_width_of_one_case_however_often_it_ran() -> None:
    assert pass_rate([15], [30]) == pass_rate([1], [2])
    assert pass_rate([30], [30]) == pass_rate([1], [1])


def test_cases_that_are_all_alike_are_worth_no_more_than_the_cap() -> None:
    # Three cases of 1/2: no variance, so 3 × 2 / (1 + 1/3) = 4.5 effective cases, and t(.975, 2) = 4.3027.
    rate = pass_rate([1, 1, 1], [2, 2, 2])
    low, high = wilson(0.5, 4.5, 4.3026527297)
    assert (rate.value, rate.low, rate.high) == (0.5, near(low), near(high))


@pytest.mark.parametrize(
    ("passes", "decided", "message"),
    [
        ([1, 2], [3], "2 cases have passes but 1 have decided trials"),
        ([1, 4], [3, 3], "case 1 has 4 passes of 3 decided trials"),
        ([-1], [3], "case 0 has -1 passes of 3 decided trials"),
    ],
)
def test_counts_that_cannot_be_are_refused(passes: list[int], decided: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pass_rate(passes, decided)
    with pytest.raises(ValueError, match=message):
        flip_rate(passes, decided)


@given(cases())
def test_an_interval_holds_its_value_and_has_a_width(counts: tuple[list[int], list[int]]) -> None:
    for rate in (pass_rate(*counts), flip_rate(*counts)):
        if rate.value is not None:
            assert rate.low is not None
            assert rate.high is not None
            assert 0 <= rate.low <= rate.value <= rate.high <= 1
            assert rate.high - rate.low > 0


@given(cases())
def test_swapping_pass_and_fail_mirrors_the_pass_rate_and_leaves_the_flips(
    counts: tuple[list[int], list[int]],
) -> None:
    passes, decided = counts
    fails = [r - c for c, r in zip(passes, decided, strict=True)]
    rate, mirrored = pass_rate(passes, decided), pass_rate(fails, decided)
    assert flip_rate(fails, decided) == flip_rate(passes, decided)
    if rate.value is None or rate.low is None or rate.high is None:
        assert mirrored == rate
    else:
        assert (mirrored.value, mirrored.low, mirrored.high) == (
            near(1 - rate.value),
            near(1 - rate.high),
            near(1 - rate.low),
        )


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_cases_does_not_matter(counts: tuple[list[int], list[int]], shuffle: Any) -> None:
    pairs = list(zip(*counts, strict=True))
    shuffle.shuffle(pairs)
    rate, again = pass_rate(*counts), pass_rate([c for c, _ in pairs], [r for _, r in pairs])
    assert again.model_dump() == pytest.approx(rate.model_dump(), abs=1e-8)


@given(cases(most=1))
def test_with_one_repeat_the_interval_is_plain_wilson(counts: tuple[list[int], list[int]]) -> None:
    rate, n = pass_rate(*counts), sum(counts[1])
    if n:
        assert (rate.low, rate.high) == wilson(sum(counts[0]) / n, n, Z)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.sampled_from([0.5, 0.95]))
def test_a_quantile_is_the_smallest_value_with_enough_below_it(values: list[float], q: float) -> None:
    found = quantile(values, q)
    assert found in values
    # Shares of counts are compared as numpy compares them: a rounding error of q × n is no observation.
    assert sum(value <= found for value in values) >= q * len(values) - 1e-9
    assert sum(value < found for value in values) < q * len(values) + 1e-9
