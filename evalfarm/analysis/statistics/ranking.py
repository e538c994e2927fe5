"""Several arms in the order that the evidence allows, which is rarely a list from first to last."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from numpy.typing import ArrayLike

from evalfarm.analysis.statistics.paired import CaseCounts, apart, holm
from evalfarm.analysis.statistics.stats import CONFIDENCE, pass_rate
from evalfarm.contracts.verdict import Rate

ALPHA = 1 - CONFIDENCE  #: of all pairs together


@dataclass(frozen=True, slots=True)
class Ranked:
    """One arm's place among several: a range, because arms that cannot be told apart share their places."""

    name: str
    rate: Rate  #: over the arm's own cases
    best: int  #: 1 + the arms that are significantly better
    worst: int  #: all arms - those that are significantly worse


def rank(arms: Mapping[str, CaseCounts], families: ArrayLike | None = None) -> tuple[Ranked, ...]:
    """The arms with the range of places each can have, all on the same list of cases.

    Every pair by the p of `paired_difference` on the cases decided in both, Holm-corrected over the pairs at .05.
    In the order of the ranges; arms with equal ranges in the order of their names, never of their rates.
    """
    pairs = list(combinations(arms, 2))
    differences = {pair: apart(arms[pair[0]], arms[pair[1]], families) for pair in pairs}
    adjusted = holm([1.0 if difference.p is None else difference.p for difference in differences.values()])
    better, worse = dict.fromkeys(arms, 0), dict.fromkeys(arms, 0)
    for (first, second), p in zip(pairs, adjusted, strict=True):
        ahead = differences[first, second].estimate.value
        if p < ALPHA and ahead:
            winner, loser = (second, first) if ahead > 0 else (first, second)
            better[loser] += 1
            worse[winner] += 1
    ranked = [
        Ranked(name, pass_rate(arm.passed, arm.decided, families), 1 + better[name], len(arms) - worse[name])
        for name, arm in arms.items()
    ]
    return tuple(sorted(ranked, key=lambda arm: (arm.best, arm.worst, arm.name)))
