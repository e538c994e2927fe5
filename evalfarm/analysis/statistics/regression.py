"""Whether tonight is worse than before: the nightly rule.

The nightly rule asks of the *same cases* whether they did worse than a rerun of the accepted nights would. It screens
every night at a generous level, confirms by fresh repeats, and alerts only if the pooled evidence holds and the drop
is large enough to matter. At 108 cases it alarms about once a year by chance. Slices and single cases are looked at
only after an alert, corrected. A difference is tonight - baseline as a fraction: a drop is negative.
`rule_check` says how often the rule errs, `drift` watches for what is too slow for it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from evalfarm.analysis.statistics.comparisons import MOST_UNDECIDED, UNLIKE_LOSSES, losses_alike, undecided_share
from evalfarm.analysis.statistics.figures import FigureChange
from evalfarm.analysis.statistics.paired import CaseCounts, benjamini_hochberg, rerun_difference, rerun_test
from evalfarm.analysis.statistics.stats import Estimate, Floats

NightVerdict = Literal["held", "regressed", "improved", "inconclusive", "to confirm"]

FAMILY_FDR = 0.02  #: share of false alerts among several configurations watched by one rule
SUSPECT_FDR = 0.10  #: likewise among the slices or cases named after an alert
_NO_CHANGE = "no change"
_ROUNDING = 1e-9  #: a difference of shares below this is none
LEAST_RISE = 0.20  #: a figure (latency, tokens) must rise by at least this share


@dataclass(frozen=True, slots=True)
class NightlyRule:
    """The numbers of the nightly rule; probabilities are one-sided mid-p, corrected for dispersion."""

    screen: float = 0.10  #: at most this goes on to the confirm run
    confirm: float = 0.005  #: at most this, over both, alerts
    least_drop: float = 0.02  #: and the drop is at least this
    confirm_repeats: int = 6  #: fresh repeats of every case, uncached, an hour later or more
    most_nights: int = 10  #: the baseline is the last so many accepted nights
    least_nights: int = 5  #: with fewer nothing is said
    most_undecided: float = MOST_UNDECIDED  #: a larger undecided share of tonight's trials says nothing either
    unlike_losses: float = UNLIKE_LOSSES  #: nor do losses that differ from the baseline's with Fisher's p below this


@dataclass(frozen=True, slots=True)
class Dispersion:
    """How far nights lie apart, against what reruns alone would do."""

    factor: float  #: φ = max(1, Q / (J - 1)); 1 where it cannot be known
    q: float
    p: float  #: that nights spread so far by rerun noise; small: run the old build beside the new one in one night


@dataclass(frozen=True, slots=True)
class Night:
    """The rule's verdict on one night, with all that led to it."""

    verdict: NightVerdict
    reason: str  #: one sentence
    nights: int  #: in the baseline
    change: Estimate  #: with the interval for the same cases
    p_screen: float | None  #: None: the rule did not get there
    p_confirm: float | None
    dispersion: Dispersion
    baseline: CaseCounts
    tonight: CaseCounts  #: with the confirm run's trials, where there was one


@dataclass(frozen=True, slots=True)
class Suspect:
    """A slice or a case that an alert may be due to."""

    name: str
    change: float | None
    p: float  #: exact, one-sided
    p_adjusted: float  #: over all slices, or all cases, looked at
    named: bool  #: the adjusted p is at most `SUSPECT_FDR`


NIGHTLY = NightlyRule()


def judge_night(
    accepted: Sequence[CaseCounts],
    tonight: CaseCounts,
    confirm: CaseCounts | None = None,
    rule: NightlyRule = NIGHTLY,
) -> Night:
    """The rule's verdict on `tonight`, from the accepted nights before it (oldest first), all on one list of cases.

    Screen: p of `rerun_test`, tonight against the pooled baseline, lower tail, mid-p, corrected for dispersion as
    Φ(Φ⁻¹(p) / √φ). At most `rule.screen`: "to confirm", until the `confirm` run is handed in; then the p over both
    runs' trials must be at most `rule.confirm` and the drop at least `rule.least_drop` to be "regressed", else it
    held. "improved" is the mirror of the confirm level on tonight alone, and information only. An alerted night must
    not be handed in as accepted. Too few nights, or too many or unlike losses: "inconclusive", which is not green.
    """
    nights = accepted[-rule.most_nights :]
    baseline = pooled(nights) if nights else _nothing_like(tonight)
    seen = tonight if confirm is None else pooled([tonight, confirm])
    spread = dispersion(nights)
    change, _ = rerun_difference(baseline, seen)
    doubt = _doubt(len(nights), baseline, seen, change, rule)
    if doubt:
        return Night("inconclusive", doubt, len(nights), change, None, None, spread, baseline, seen)
    screened = rerun_test(baseline, tonight)
    p_screen = _dispersed(screened.lower_mid, spread.factor)
    p_confirm = None if confirm is None else _dispersed(rerun_test(baseline, seen).lower_mid, spread.factor)
    p_better = _dispersed(screened.upper_mid, spread.factor)
    verdict, reason = _verdict(change.value or 0.0, (p_screen, p_confirm, p_better), rule)
    return Night(verdict, reason, len(nights), change, p_screen, p_confirm, spread, baseline, seen)


def regressed_among(nights: Sequence[Night], rule: NightlyRule = NIGHTLY) -> tuple[bool, ...]:
    """Which of several configurations, judged the same night, regressed: Benjamini-Hochberg over their confirm p.

    At `FAMILY_FDR`; one that did not go to the confirm run counts with p = 1. The least drop still holds.
    """
    adjusted = benjamini_hochberg([1.0 if night.p_confirm is None else night.p_confirm for night in nights])
    return tuple(
        q <= FAMILY_FDR and night.verdict != "inconclusive" and (night.change.value or 0.0) <= -rule.least_drop
        for night, q in zip(nights, adjusted, strict=True)
    )


def suspects(night: Night, parts: Mapping[str, Sequence[int]]) -> tuple[Suspect, ...]:
    """The slices or cases behind an alert, most suspicious first; none unless the night regressed.

    `parts`: name to the places of its cases in the list of cases. Exact lower p of `rerun_test` (mid-p would name too
    many), Benjamini-Hochberg over the parts. One case of three trials a night cannot be named from one night alone.
    """
    if night.verdict != "regressed":
        return ()
    inside = {name: (_part(night.baseline, at), _part(night.tonight, at)) for name, at in parts.items()}
    p_values = [rerun_test(*arms).lower for arms in inside.values()]
    found = [
        Suspect(name, rerun_difference(*arms)[0].value, p, q, named=q <= SUSPECT_FDR)
        for (name, arms), p, q in zip(inside.items(), p_values, benjamini_hochberg(p_values), strict=True)
    ]
    return tuple(sorted(found, key=lambda suspect: (suspect.p, suspect.name)))


def rose(change: FigureChange, *, level: float = NIGHTLY.confirm, least: float = LEAST_RISE) -> bool:
    """Whether a figure (latency, tokens) rose by at least `least`, with a one-sided p of at most `level`."""
    if change.factor.value is None or change.p_higher is None:
        return False
    return change.factor.value >= 1 + least and change.p_higher <= level


def dispersion(nights: Sequence[CaseCounts]) -> Dispersion:
    """φ of J nights: Q = Σ_j (T_j - E_j)² / V_j (J - 1) / J on J - 1 degrees of freedom.

    T_j are the passes of night j, E_j = Σ_i r_ij f_i, V_j = Σ_i r_ij f_i (1 - f_i) (M_i - r_ij) / (M_i - 1), f_i the
    pass share of case i over its M_i trials of all nights, r_ij of them in night j. Cochran's Q at one repeat a night.
    Fewer than two nights, or no case that varies: φ = 1, Q = 0, p = 1.
    """
    count = len(nights)
    if count < 2:
        return Dispersion(1.0, 0.0, 1.0)
    passed, trials = (np.stack([getattr(night, of) for night in nights]) for of in ("passed", "decided"))
    total = trials.sum(axis=0)
    share = passed.sum(axis=0) / np.maximum(total, 1)
    variance = (trials * share * (1 - share) * (total - trials) / np.maximum(total - 1, 1)).sum(axis=1)
    moved = (passed.sum(axis=1) - (trials * share).sum(axis=1)) ** 2
    q = float((moved[variance > 0] / variance[variance > 0]).sum()) * (count - 1) / count
    return Dispersion(max(1.0, q / (count - 1)), q, float(stats.chi2.sf(q, count - 1)))


def pooled(runs: Sequence[CaseCounts]) -> CaseCounts:
    """The trials of several runs of the same list of cases as one; at least one run."""
    return CaseCounts(
        passed=_summed([run.passed for run in runs]),
        decided=_summed([run.decided for run in runs]),
        planned=_summed([run.planned for run in runs]),
    )


def _summed(counts: Sequence[Floats]) -> Floats:
    total: Floats = np.sum(np.stack(counts), axis=0)
    return total


def _doubt(nights: int, baseline: CaseCounts, seen: CaseCounts, change: Estimate, rule: NightlyRule) -> str:
    """Why nothing can be said; empty where something can."""
    undecided, p_alike = undecided_share(seen), losses_alike(baseline, seen)
    if nights < rule.least_nights:
        needed = "is needed" if rule.least_nights == 1 else "are needed"
        return f"the baseline has {_counted(nights, 'accepted night')}; {rule.least_nights} {needed}"
    if change.value is None:
        return "no case was decided both tonight and in the baseline"
    if undecided > rule.most_undecided:
        return f"{undecided:.1%} of tonight's trials were not decided; at most {rule.most_undecided:.0%} may be"
    if p_alike < rule.unlike_losses:
        return (
            f"tonight {undecided:.1%} of the trials were not decided, in the baseline {undecided_share(baseline):.1%}"
        )
    return ""


def _verdict(change: float, p_values: tuple[float, float | None, float], rule: NightlyRule) -> tuple[NightVerdict, str]:
    p_screen, p_confirm, p_better = p_values
    moved = _moved(change)
    if p_better <= rule.confirm and change >= rule.least_drop:
        return "improved", f"{moved} (p = {p_better:.2g}); for information"
    if p_screen > rule.screen:
        within = "" if moved == _NO_CHANGE else ", which is no more than a rerun does"
        return "held", f"{moved}{within} (p = {p_screen:.2g})"
    if p_confirm is None:
        decides = "decides" if rule.confirm_repeats == 1 else "decide"
        fresh = _counted(rule.confirm_repeats, "fresh repeat")
        return "to confirm", f"{moved} (p = {p_screen:.2g}): {fresh} of every case {decides}"
    if p_confirm > rule.confirm:
        return "held", f"{moved}, not confirmed (p = {p_confirm:.2g})"
    if change > -rule.least_drop:
        least = f"{100 * rule.least_drop:g} points"
        return "held", f"{moved}, confirmed (p = {p_confirm:.2g}), but less than the {least} that alert"
    return "regressed", f"{moved}, confirmed (p = {p_confirm:.2g})"


def _moved(change: float) -> str:
    """A difference in words: `a drop of 3.1 points`, `no change`."""
    size = f"{abs(100 * change):.1f}"
    if size == "0.0":
        return (
            _NO_CHANGE if abs(change) < _ROUNDING else f"a {'rise' if change > 0 else 'drop'} of less than 0.1 points"
        )
    return f"a {'rise' if change > 0 else 'drop'} of {_counted(size, 'point')}"


def _counted(number: int | str, noun: str) -> str:
    """`1 accepted night`, `3.0 points`."""
    return f"{number} {noun}" if str(number) in ("1", "1.0") else f"{number} {noun}s"


def _dispersed(p: float, factor: float) -> float:
    """A one-sided p for nights that spread √factor times as wide as reruns: Φ(Φ⁻¹(p) / √factor)."""
    return float(stats.norm.cdf(stats.norm.ppf(p) / math.sqrt(factor)))


def _part(counts: CaseCounts, at: Sequence[int]) -> CaseCounts:
    places = np.asarray(at, dtype=np.intp)
    return CaseCounts(counts.passed[places], counts.decided[places], counts.planned[places])


def _nothing_like(counts: CaseCounts) -> CaseCounts:
    none = np.zeros(len(counts.decided))
    return CaseCounts(none, none, none)
