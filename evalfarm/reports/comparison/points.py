"""How a difference and a p value are written."""

from evalfarm.analysis.statistics.stats import Estimate
from evalfarm.reports.numbers import NOT_KNOWN


def points(share: float | None) -> str:
    """A difference of two shares in percentage points with its sign, `+3.1`; 0 has none."""
    if share is None:
        return NOT_KNOWN
    told = f"{100 * share:+.1f}"
    return "0.0" if told in ("+0.0", "-0.0") and share == 0 else told


def with_interval(change: Estimate) -> str:
    """`+3.1 [-1.2, +7.4]`, in percentage points; an interval that cannot be given is left out."""
    if change.value is None or change.low is None or change.high is None:
        return points(change.value)
    return f"{points(change.value)} [{points(change.low)}, {points(change.high)}]"


def p_value(p: float | None) -> str:
    """Three decimals, `<0.001` below that."""
    if p is None:
        return NOT_KNOWN
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def told_p(p: float) -> str:
    """`p = 0.042`, `p < 0.001`."""
    told = p_value(p)
    return f"p < {told[1:]}" if told.startswith("<") else f"p = {told}"


def factor(change: Estimate) -> str:
    """`×1.25 [1.10, 1.42]`."""
    if change.value is None:
        return NOT_KNOWN
    told = f"×{change.value:.2f}"
    return told if change.low is None or change.high is None else f"{told} [{change.low:.2f}, {change.high:.2f}]"
