"""The kinds of plugin that suites are drawn from, with what is true of each."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Kind:
    """A kind of plugin: how the true pass rates of cases are spread."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, ...]], Floats]
    moments: Callable[[int], tuple[float, float]]  #: k -> E p^k and E (1 - p)^k

    def flips(self, k: int) -> float:
        """The true chance that k repeats of a case do not all end alike."""
        passing, failing = self.moments(k)
        return 1 - passing - failing


def beta_kind(mean: float, icc: float) -> Kind:
    weight = 1 / icc - 1
    a, b = mean * weight, (1 - mean) * weight

    def moments(k: int) -> tuple[float, float]:
        steps = np.arange(k)
        return float(np.prod((a + steps) / (a + b + steps))), float(np.prod((b + steps) / (a + b + steps)))

    return Kind(f"beta {mean} {icc}", lambda rng, shape: rng.beta(a, b, shape), moments)


def mixed_kind(rates: tuple[float, ...], weights: tuple[float, ...]) -> Kind:
    p, w = np.array(rates), np.array(weights)
    return Kind(
        "mixed",
        lambda rng, shape: rng.choice(p, size=shape, p=w),
        lambda k: (float(w @ p**k), float(w @ (1 - p) ** k)),
    )


KINDS = (
    beta_kind(0.877, 0.342),
    beta_kind(0.5, 0.3),
    beta_kind(0.98, 0.5),
    beta_kind(0.99, 0.3),
    beta_kind(0.95, 0.7),
    beta_kind(0.9, 0.05),
    mixed_kind((1.0, 0.0, 0.6), (0.70, 0.08, 0.22)),
)
