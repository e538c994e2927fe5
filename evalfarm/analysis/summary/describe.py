"""What is said of some cells of one arm: the whole arm, or its cases with one value of a tag."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from evalfarm.analysis.statistics import of_k, stats, steadiness
from evalfarm.analysis.statistics.figures import LEAST_CASES, log_t_interval, order_interval
from evalfarm.analysis.statistics.latency import latency_quantile
from evalfarm.analysis.statistics.stats import Estimate, Floats
from evalfarm.analysis.summary.latency import deciles, points
from evalfarm.analysis.summary.tables import Observed, Places, Tables
from evalfarm.contracts.figures import Bounds, Cost, Latency, LatencyMeasures, Measure, PerQuestion, RepeatSpread
from evalfarm.contracts.verdict import VERDICTS, AttemptRate, RateOfK

_KS = (1, 2, 3, 4, 5, 10, 20, 50)
"""The k of pass^k, pass@k and rarefied flips, as far as the repeats go; and all the repeats, where they are fewer."""


def describe(tables: Tables, cells: Places) -> dict[str, Any]:
    """The fields of `Statistics` over at least one cell of one arm, whose places are given in ascending order."""
    c, r, planned = tables.counts["passed"][cells], tables.decided[cells], tables.planned[cells]
    families = _families(tables, cells)
    tools, thoughts = (_per_question(tables, cells, name) for name in ("tool_calls", "reasoning_tokens"))
    latency, cost = _latency(tables, cells), _cost(tables, cells)
    requests = _within(tables, tables.request_latencies, cells)
    ks = _ks(r)
    return {
        **{verdict: int(tables.counts[verdict][cells].sum()) for verdict in VERDICTS},
        "planned": int(planned.sum()),
        "pass_rate": stats.pass_rate(c, r, families),
        "pass_rate_bounds": Bounds(**asdict(stats.pass_rate_bounds(c, r, planned, families))),
        "families": None if families is None else len(np.unique(families)),
        "flip_rate": stats.flip_rate(c, r, families),
        "disagreement": steadiness.disagreement(c, r, families),
        "rarefied_flips": tuple(_of_k(steadiness.rarefied_flip_rate(c, r, k, families)) for k in ks if k >= 2),
        "pass_hat_k": tuple(_of_k(of_k.pass_hat_k(c, r, k, families)) for k in ks),
        "pass_at_k": tuple(_of_k(of_k.pass_at_k(c, r, k, families)) for k in ks),
        "repeat_spread": _spread(tables, cells),
        "tool_calls_per_question": tools.mean.value,
        "reasoning_tokens_per_question": thoughts.mean.value,
        "tool_calls": tools,
        "reasoning_tokens": thoughts,
        "latency_s": Latency(p50=latency.p50.value, p95=latency.p95.value),
        "latency_measures_s": latency,
        "request_latency_s": points(requests),
        "cost_usd": cost.total_usd,
        "cost": cost,
        "pass_rate_by_attempt": _by_attempt(tables, cells, families),
    }


def _families(tables: Tables, cells: Places) -> list[str] | None:
    """The unit that each case belongs to; None where no case has a family, so that each stands for itself."""
    named = [tables.families[at] for at in cells]
    if not any(named):
        return None
    # A case without a family is one of its own; the mark keeps it apart from a family of that name.
    return [f"family {name}" if name else f"case {tables.cases[at]}" for at, name in zip(cells, named, strict=True)]


def _ks(decided: Floats) -> list[int]:
    most = int(decided.max())
    return sorted({k for k in _KS if k <= most} | ({most} if 0 < most < _KS[-1] else set()))


def _of_k(found: of_k.RateOfK) -> RateOfK:
    return RateOfK(k=found.k, rate=found.rate, cases=found.cases, dropped=found.dropped)


def _spread(tables: Tables, cells: Places) -> RepeatSpread:
    repeats = tables.decided_repeats[tables.arm[cells[0]]]
    by_repeat = [tables.passed_by_repeat[at] for at in cells]
    whole = [passed for passed in by_repeat if len(passed) == repeats > 0]
    found = steadiness.repeat_spread(np.array(whole, dtype=np.float64).reshape(len(whole), repeats))
    return RepeatSpread(
        cases=found.cases,
        repeats=repeats,
        lowest=found.lowest,
        highest=found.highest,
        sd_observed=found.sd_observed,
        sd_one_run=_measure(found.sd_one_run),
        q=found.q,
        p=found.p,
        more_than_noise=found.more_than_noise,
    )


def _per_question(tables: Tables, cells: Places, name: str) -> PerQuestion:
    """Over cases, each the mean of its trials: mean with `log_t_interval` from LEAST_CASES on, and `order_interval`."""
    figure = tables.figures[name]
    shown = cells[figure.reported[cells] > 0]
    means = figure.means[shown]
    widths = figure.highest[shown] - figure.lowest[shown]
    wide = _widest([tables.cases[at] for at in shown], widths)
    widest = None if wide is None else shown[wide]
    if len(means) >= LEAST_CASES:
        mean = _measure(log_t_interval(means))
    else:
        mean = Measure(value=float(means.mean()) if len(means) else None, low=None, high=None)
    return PerQuestion(
        mean=mean,
        median=_measure(order_interval(means, 0.5)),
        lowest=float(means.min()) if len(means) else None,
        highest=float(means.max()) if len(means) else None,
        sd=float(means.std(ddof=1)) if len(means) >= 2 else None,
        cases=len(means),
        missing=int((tables.decided[cells] - figure.reported[cells]).sum()),
        widest=None if widest is None else tables.cases[widest],
        widest_low=None if widest is None else float(figure.lowest[widest]),
        widest_high=None if widest is None else float(figure.highest[widest]),
    )


def _widest(names: Sequence[str], widths: Floats) -> int | None:
    """Where the widest case stands, of equals the one whose name comes first; None where none varies."""
    if len(widths) == 0 or widths.max() <= 0:
        return None
    return min(np.flatnonzero(widths == widths.max()).tolist(), key=lambda at: names[at])


def _latency(tables: Tables, cells: Places) -> LatencyMeasures:
    ranked = _within(tables, tables.latencies, cells)
    limits = tables.time_limit_s[cells]
    limit_s = float(np.nanmin(limits)) if not np.isnan(limits).all() else np.inf
    return LatencyMeasures(
        p50=_measure(latency_quantile(ranked.cell, ranked.value, 0.5, limit_s=limit_s)),
        p95=_measure(latency_quantile(ranked.cell, ranked.value, 0.95, limit_s=limit_s)),
        deciles=deciles(ranked),
        trials=len(ranked.value),
        timeouts=int(tables.timeouts[cells].sum()),
    )


def _within(tables: Tables, by_arm: Sequence[Observed], cells: Places) -> Observed:
    member = np.zeros(len(tables.arm), dtype=bool)
    member[cells] = True
    arm = int(tables.arm[cells[0]])
    whole = len(cells) == np.count_nonzero(tables.arm == arm)
    return by_arm[arm] if whole else by_arm[arm].within(member)


def _cost(tables: Tables, cells: Places) -> Cost:
    ran = int((tables.planned - tables.counts["not_run"])[cells].sum())
    passed, total = int(tables.counts["passed"][cells].sum()), float(tables.cost_usd[cells].sum())
    known = ran > 0 and not np.isnan(total)
    spent = float(tables.all_attempts_usd[cells].sum())
    return Cost(
        total_usd=total if known else None,
        per_question_usd=total / ran if known else None,
        per_pass_usd=total / passed if known and passed else None,
        uncounted_attempts=int(tables.earlier_attempts[cells].sum()),
        all_attempts_usd=None if np.isnan(spent) or not ran else spent,
    )


def _by_attempt(tables: Tables, cells: Places, families: Sequence[str] | None) -> tuple[AttemptRate, ...]:
    found = []
    for number in np.unique(tables.attempts.attempt[np.isin(tables.attempts.cell, cells)]):
        passed, decided = np.zeros(len(tables.arm)), np.zeros(len(tables.arm))
        ended = tables.attempts.attempt == number
        passed[tables.attempts.cell[ended]] = tables.attempts.passed[ended]
        decided[tables.attempts.cell[ended]] = tables.attempts.decided[ended]
        rate = stats.pass_rate(passed[cells], decided[cells], families)
        found.append(AttemptRate(attempt=int(number), trials=int(decided[cells].sum()), rate=rate))
    return tuple(found)


def _measure(found: Estimate) -> Measure:
    return Measure(value=found.value, low=found.low, high=found.high)
