"""Two arms that ran each case once: what is known without repeats, or from published totals alone."""

import math
from collections.abc import Callable

from scipy import special  # scipy.stats and scipy.optimize cost 60 MB and most of a second at import

from evalfarm.analysis.statistics.stats import Estimate, critical_z, wilson


def newcombe(both: int, only_a: int, only_b: int, neither: int) -> Estimate:
    """A - B for two arms that ran each case once, by Newcombe's (1998) method 10 from the two Wilson intervals.

    The correlation is φ = (ad - bc) / √(product of margins), its numerator max(ad - bc - n/2, 0) where ad > bc, and 0
    where a margin is empty. No case gives None thrice.
    """
    n = both + only_a + only_b + neither
    if n == 0:
        return Estimate(None, None, None)
    a, b = (both + only_a) / n, (both + only_b) / n
    (low_a, high_a), (low_b, high_b) = wilson(a, n, critical_z()), wilson(b, n, critical_z())
    apart = both * neither - only_a * only_b
    margins = (both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither)
    phi = (max(apart - n / 2, 0.0) if apart > 0 else apart) / math.sqrt(margins) if margins else 0.0

    def reach(of_a: float, of_b: float) -> float:
        return math.sqrt(max(0.0, of_a**2 - 2 * phi * of_a * of_b + of_b**2))

    return Estimate(a - b, a - b - reach(a - low_a, high_b - b), a - b + reach(high_a - a, b - low_b))


def tango(only_a: int, only_b: int, n: int) -> Estimate:
    """A - B for n cases run once in each arm, by Tango's (1998) score interval; needs only the discordant counts.

    The ends solve (b - c - nδ) / √(n (2 q̃ + δ (1 - δ))) = ± z, q̃ the constrained estimate of P(only B). n = 0: None.
    """
    if n == 0:
        return Estimate(None, None, None)
    value, z = (only_a - only_b) / n, critical_z()

    def score(delta: float) -> float:
        linear = -only_a - only_b + (2 * n - only_a + only_b) * delta
        # Where all cases tell the arms apart one way the root is of zero, or of a rounding error below it.
        root = math.sqrt(max(0.0, linear**2 + 8 * n * only_b * delta * (1 - delta)))
        q = (root - linear) / (4 * n)
        variance = n * (2 * q + delta * (1 - delta))
        gap = only_a - only_b - n * delta
        return gap / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, gap) if gap else 0.0

    edge = 1 - 1e-12
    low = -1.0 if score(-edge) <= z else _root(lambda delta: score(delta) - z, -edge, value)
    high = 1.0 if score(edge) >= -z else _root(lambda delta: score(delta) + z, value, edge)
    return Estimate(value, low, high)


def p_range_of_totals(passed_a: int, passed_b: int, cases: int) -> tuple[float, float]:
    """The smallest and largest exact McNemar p that two published totals over the same cases allow.

    The totals fix only the difference of the discordant counts: at best every case that tells them apart goes one way,
    at worst as many as fit go the other.
    """
    fewer, more = sorted((passed_a, passed_b))
    apart, most_against = more - fewer, min(fewer, cases - more)
    tails = [2 * float(special.bdtr(against, apart + 2 * against, 0.5)) for against in (0, most_against)]
    return min(1.0, *tails), min(1.0, max(tails))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function changes its sign between two places, to 1e-12."""
    begins_below = function(low) < 0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if (function(middle) < 0) == begins_below else (low, middle)
    return (low + high) / 2
