import math
from typing import Any

import numpy as np
import pytest

from evalfarm.analysis.summary.latency import deciles, points
from evalfarm.analysis.summary.tables import Observed
from evalfarm.contracts.figures import Latency


def observed(values: list[float], cells: list[int] | None = None) -> Observed:
    return Observed(
        np.array(cells if cells is not None else [0] * len(values), dtype=np.uint32), np.array(values, dtype=np.float64)
    )


def test_nothing_to_measure_gives_nothing() -> None:
    assert points(observed([])) == Latency(p50=None, p95=None)
    assert deciles(observed([])) == ()


@pytest.mark.parametrize("values", [[4.0, 1.0, 3.0, 2.0], list(range(100, 0, -1))])
def test_points_of_values_in_any_order_are_observed_ones(values: list[Any]) -> None:
    ranked = sorted(values)
    expected = [ranked[math.ceil(len(values) * q) - 1] for q in (0.5, 0.95)]
    assert points(observed(values)) == Latency(p50=expected[0], p95=expected[1])


def test_a_decile_that_was_cut_off_has_no_value() -> None:
    assert deciles(observed([1.0, 2.0, math.inf])) == (1.0, 1.0, 1.0, 2.0, 2.0, 2.0, None, None, None)
