import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.analysis.statistics.figures import latency_quantile
from evalfarm.analysis.summary.latency import deciles, points, ranked_quantile
from evalfarm.analysis.summary.tables import Observed
from evalfarm.contracts.figures import Latency, Measure

LIMIT_S = 5.0


def observed(values: list[float], cells: list[int] | None = None) -> Observed:
    return Observed(
        np.array(cells if cells is not None else [0] * len(values), dtype=np.uint32), np.array(values, dtype=np.float64)
    )


@given(
    trials=st.lists(st.tuples(st.integers(0, 6), st.floats(0.01, LIMIT_S), st.booleans()), min_size=1, max_size=80),
    q=st.sampled_from([0.1, 0.5, 0.9, 0.95]),
)
def test_ranks_give_what_the_reference_gives(trials: list[tuple[int, float, bool]], q: float) -> None:
    cells, values, cut = ([trial[at] for trial in trials] for at in range(3))
    censored = [math.inf if out else value for value, out in zip(values, cut, strict=True)]
    order = np.argsort(censored)
    ranked = observed(np.array(censored)[order].tolist(), np.array(cells)[order].tolist())
    limit_s = min((value for value, out in zip(values, cut, strict=True) if out), default=math.inf)
    expected = latency_quantile(cells, values, q, timed_out=cut)
    found = ranked_quantile(ranked, q, limit_s=limit_s)
    assert found == Measure(value=expected.value, low=expected.low, high=expected.high)


def test_nothing_to_measure_gives_nothing() -> None:
    assert ranked_quantile(observed([]), 0.5) == Measure(value=None, low=None, high=None)
    assert points(observed([])) == Latency(p50=None, p95=None)
    assert deciles(observed([])) == ()


@pytest.mark.parametrize("values", [[4.0, 1.0, 3.0, 2.0], list(range(100, 0, -1))])
def test_points_of_values_in_any_order_are_observed_ones(values: list[Any]) -> None:
    ranked = sorted(values)
    expected = [ranked[math.ceil(len(values) * q) - 1] for q in (0.5, 0.95)]
    assert points(observed(values)) == Latency(p50=expected[0], p95=expected[1])


def test_a_decile_that_was_cut_off_has_no_value() -> None:
    assert deciles(observed([1.0, 2.0, math.inf])) == (1.0, 1.0, 1.0, 2.0, 2.0, 2.0, None, None, None)
