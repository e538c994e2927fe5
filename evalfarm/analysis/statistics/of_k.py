"""What k trials of a case show together: pass@k, pass^k, and any other figure about k of its repeats."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalfarm.analysis.statistics.stats import Floats, counted, family_index, mean_share
from evalfarm.contracts.verdict import Rate
from evalfarm.errors import UsageError


@dataclass(frozen=True, slots=True)
class RateOfK:
    """A rate about k trials drawn from each case, over the cases that have as many."""

    k: int
    rate: Rate
    cases: int
    dropped: int  #: cases with some decided trials, but fewer than k


def pass_at_k(passes: ArrayLike, decided: ArrayLike, k: int, families: ArrayLike | None = None) -> RateOfK:
    """pass@k: the chance that at least one of k trials passes, 1 - C(R_i - c_i, k) / C(R_i, k), mean over cases.

    Unbiased (Chen et al. 2021); interval as for `pass_rate`. Only cases with R_i ≥ k enter; the others are counted
    as dropped. Nothing decided gives a rate of None thrice.
    Raises UsageError where no case has k decided trials: beyond the repeats nothing is extrapolated.
    """
    return of_k("pass@k", passes, decided, k, families, per_case=lambda c, r: 1 - all_of_k(r - c, r, k))


def pass_hat_k(passes: ArrayLike, decided: ArrayLike, k: int, families: ArrayLike | None = None) -> RateOfK:
    """pass^k: the chance that all of k trials pass, C(c_i, k) / C(R_i, k), mean over cases.

    Unbiased, unlike (c_i / R_i)^k, which is too high (Yao et al. 2024). Otherwise as `pass_at_k`.
    """
    return of_k("pass^k", passes, decided, k, families, per_case=lambda c, r: all_of_k(c, r, k))


def of_k(
    name: str,
    passes: ArrayLike,
    decided: ArrayLike,
    k: int,
    families: ArrayLike | None,
    *,
    per_case: Callable[[Floats, Floats], Floats],
) -> RateOfK:
    """The mean of a figure about k trials over the cases with R_i ≥ k; raises as `pass_at_k` says."""
    c, r = counted(passes, decided)
    most = int(r.max()) if len(r) else 0
    if k < 1 or k > most > 0:
        raise UsageError(
            f"{name} with k = {k} cannot be estimated: no case has more than {most} decided trials",
            hint=f"ask for a k from 1 to {most}, or run with more repeats",
        )
    enough = r >= k
    rate = mean_share(per_case(c[enough], r[enough]), r[enough], family_index(families, len(r))[enough])
    return RateOfK(k=k, rate=rate, cases=int(enough.sum()), dropped=int(((r > 0) & ~enough).sum()))


def all_of_k(hits: Floats, trials: Floats, k: int) -> Floats:
    """The chance that k of the trials, drawn without replacement, are all hits: C(hits, k) / C(trials, k).

    As a product, which does not overflow; `trials` ≥ k.
    """
    chance = np.ones(len(hits))
    for drawn in range(k):
        chance *= np.maximum(hits - drawn, 0) / (trials - drawn)
    return chance
