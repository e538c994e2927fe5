"""What else than an answer's worth moves a judge: its length, its place; and how small an error rate surely is."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from evalfarm.analysis.statistics.stats import CONFIDENCE


def at_most(hits: int, of: int, *, confidence: float = CONFIDENCE) -> float | None:
    """The exact one-sided upper limit of a share (Clopper and Pearson 1934); None where nothing was observed.

    The beta quantile (confidence; hits + 1, of - hits), and 1 where all hit. Without a single hit it is below 5 % from
    59 observations on, at 95 % confidence.
    """
    if of == 0:
        return None
    return float(special.betaincinv(hits + 1, of - hits, confidence)) if hits < of else 1.0


def even_odds(wins: int, of: int) -> float | None:
    """The exact two-sided p of a fair coin that shows `wins` heads in `of` throws; None without a throw."""
    return min(1.0, 2 * float(special.bdtr(min(wins, of - wins), of, 0.5))) if of else None


def rank_shift(values: ArrayLike, marked: ArrayLike, strata: Sequence[str]) -> tuple[float | None, float | None]:
    """Whether marked observations have larger values than the others of their stratum.

    Shapes: aligned, one entry per observation; `marked` is true or false. Returns the chance that of two observations
    of one stratum, one marked and one not, the marked one is larger (ties count half), pooled over such pairs; and the
    one-sided p of the stratified rank sum test of van Elteren (1960): T = Σ_s (W_s - E_s) / (N_s + 1), W_s the sum of
    the marked midranks, E_s = m_s (N_s + 1) / 2, variance Σ_s m_s (N_s - m_s) / (N_s - 1) var(ranks) / (N_s + 1)².
    Both None where every stratum is all marked or all unmarked.
    """
    x, chosen, groups = np.asarray(values, dtype=np.float64), np.asarray(marked, dtype=bool), np.asarray(strata)
    shift = variance = larger = pairs = 0.0
    for stratum in np.unique(groups):
        inside = groups == stratum
        ranks, mark = stats.rankdata(x[inside]), chosen[inside]
        n, m = len(ranks), int(mark.sum())
        if not 0 < m < n:
            continue
        total = float(ranks[mark].sum())
        shift += (total - m * (n + 1) / 2) / (n + 1)
        variance += m * (n - m) / (n - 1) * float(ranks.var()) / (n + 1) ** 2
        larger += total - m * (m + 1) / 2
        pairs += m * (n - m)
    if not pairs:
        return None, None
    return larger / pairs, float(special.ndtr(-shift / np.sqrt(variance))) if variance > 0 else None
