"""What a plan can resolve, before it is paid for: how small an effect, with how many cases and repeats.

Two questions, as in `comparisons`. On the *same cases* only rerun noise stands in the way, and repeats remove it.
For *new cases* the cases themselves differ too, which no repeat removes. Effects and rates are fractions: 0.03 is
three points. D is the pairwise disagreement of `steadiness`; the noise of one trial of a case is D / 2.
"""

import math
from dataclasses import dataclass

from scipy import special  # scipy.stats costs 60 MB and most of a second at import

from evalfarm.errors import UsageError

ALPHA = 0.05
POWER = 0.8

TYPICAL_DISAGREEMENT = 0.142  #: of a published study of 108 cases; for plans without a run to go by
TYPICAL_BETWEEN = 0.03  #: variance between cases of the true difference of two arms; likewise


@dataclass(frozen=True, slots=True)
class Resolution:
    """What `cases` × `repeats` on both sides can tell apart with `POWER`; smaller effects pass unseen."""

    cases: int
    repeats: int
    same_cases: float  #: smallest drop between two runs of these cases, one-sided at `ALPHA`
    new_cases: float  #: smallest difference of two arms on cases like these, two-sided at `ALPHA`
    useful_repeats: int  #: beyond so many, the cases limit `new_cases` more than the reruns do: add cases


def resolution(
    cases: int,
    repeats: int,
    *,
    disagreement: float = TYPICAL_DISAGREEMENT,
    between: float = TYPICAL_BETWEEN,
) -> Resolution:
    """What a plan resolves; `disagreement` (D) and `between` (ω²) from an earlier run, or the typical ones.

    `useful_repeats` is the smallest R with D / R ≤ ω², at least 1: rerun noise of both arms no larger than ω².
    Where ω² = 0 every repeat is useful; then it is `repeats`. Raises UsageError for fewer than one case or repeat.
    """
    if cases < 1 or repeats < 1:
        raise UsageError(
            f"a plan of {cases} cases × {repeats} repeats resolves nothing",
            hint="give at least one case and one repeat",
        )
    useful = max(1, math.ceil(disagreement / between)) if between > 0 else repeats
    return Resolution(
        cases=cases,
        repeats=repeats,
        same_cases=smallest_drop(disagreement, cases, repeats, repeats),
        new_cases=smallest_difference(between, disagreement, cases, repeats),
        useful_repeats=useful,
    )


def smallest_drop(
    disagreement: float,
    cases: int,
    repeats: float,
    baseline_repeats: float,
    *,
    alpha: float = ALPHA,
    power: float = POWER,
) -> float:
    """The smallest drop on the same cases found with this power: (z_α + z_β) √(D / 2n (1/R_new + 1/R_base)).

    One-sided at `alpha`.
    """
    noise = disagreement / (2 * cases) * (1 / repeats + 1 / baseline_repeats)
    return (_upper_z(alpha) + _upper_z(1 - power)) * math.sqrt(noise)


def repeats_for_drop(
    drop: float, disagreement: float, cases: int, *, alpha: float = ALPHA, power: float = POWER
) -> int:
    """The fewest repeats on either side with which `smallest_drop` is at most `drop` > 0; at least 1."""
    z = _upper_z(alpha) + _upper_z(1 - power)
    return max(1, math.ceil(z * z * disagreement / (cases * drop * drop) - 1e-9))


def smallest_difference(
    between: float, disagreement: float, cases: int, repeats: float, *, alpha: float = ALPHA, power: float = POWER
) -> float:
    """The smallest difference of two arms on new cases: (z_{α/2} + z_β) √((ω² + D / R) / n), D the mean of both arms'.

    Two-sided at `alpha`; Miller (2024) with σ² = D / 2 for each arm. It solves `cases_for_difference` for the effect.
    """
    z = _upper_z(alpha / 2) + _upper_z(1 - power)
    return z * math.sqrt((between + disagreement / repeats) / cases)


def cases_for_difference(effect: float, variance: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """How many cases a difference takes: n = (z_{α/2} + z_β)² (ω² + σ_A² / K_A + σ_B² / K_B) / δ², Miller (2024).

    `variance` is the bracket, the variance over cases of the observed differences: ω² between cases plus each arm's
    rerun variance over its K repeats (`variance_of_difference`). Not rounded; `effect` is not 0.
    """
    z = _upper_z(alpha / 2) + _upper_z(1 - power)
    return z * z * variance / (effect * effect)


def variance_of_difference(between: float, rerun_a: float, rerun_b: float, repeats: float) -> float:
    """ω² + (σ_A² + σ_B²) / K; `repeats` may be infinite."""
    return between + (rerun_a + rerun_b) / repeats


def repeats_for_difference(
    effect: float, between: float, rerun: float, cases: int, *, alpha: float = ALPHA, power: float = POWER
) -> int | None:
    """The fewest repeats of `cases` cases in both arms that find `effect`, `rerun` being σ_A² + σ_B².

    None: no number of repeats does, because the cases alone differ too much; more cases are needed.
    """
    z = _upper_z(alpha / 2) + _upper_z(1 - power)
    left = cases * effect * effect / (z * z) - between
    return max(1, math.ceil(rerun / left - 1e-9)) if left > 0 else None


def cases_for_equivalence(
    difference: float, margin: float, variance: float, *, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """How many cases show that a difference lies within ± `margin`: (z_α + z_{β/2})² variance / (margin - |d|)².

    Two one-sided tests at `alpha`. None where the difference itself is not within the margin.
    """
    room = margin - abs(difference)
    z = _upper_z(alpha) + _upper_z((1 - power) / 2)
    return z * z * variance / (room * room) if room > 0 else None


def repeats_to_see(rate: float, *, confidence: float = 0.95) -> int:
    """How often a case must be run to see a flake of this rate at least once: ln(1 - confidence) / ln(1 - rate).

    Rounded up; `rate` in (0, 1).
    """
    return math.ceil(math.log(1 - confidence) / math.log(1 - rate) - 1e-9)


def values_needed(q: float, *, confidence: float = 0.95, two_sided: bool = True) -> int:
    """How many independent values a quantile takes before its interval is closed (on the side of the far tail).

    The smallest n with max(q, 1 - q)^n at most the tail: 72 for a two-sided 95 % interval of p95.
    """
    tail = (1 - confidence) / (2 if two_sided else 1)
    return math.ceil(math.log(tail) / math.log(max(q, 1 - q)) - 1e-9)


def _upper_z(tail: float) -> float:
    return -float(special.ndtri(tail))
