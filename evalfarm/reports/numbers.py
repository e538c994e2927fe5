"""How a number is written: the same in every report, and never more than is known."""

from collections.abc import Callable
from datetime import UTC, datetime

from evalfarm.contracts.figures import Bounds, Measure
from evalfarm.contracts.verdict import Rate

NOT_KNOWN = "n/a"
OPEN = "?"
"""An end of an interval that cannot be estimated with so few."""


def plural(count: int, noun: str) -> str:
    """`1 case`, `3 cases`, `1,200 cases`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def percent(share: float | None) -> str:
    """A share of 0 … 1 as `60.0 %`; `100.0 %` and `0.0 %` are said only of exactly all and none."""
    return NOT_KNOWN if share is None else f"{percentage(share)} %"


def percentage(share: float) -> str:
    """A share in percent without the sign: `60.0`."""
    found = 100 * share
    if 0 < share < 1:
        # 2999 of 3000 is not all of them, and rounding must not say so.
        found = min(max(found, 0.1), 99.9)
    return f"{found:.1f}"


def interval(rate: Rate) -> str:
    """The limits of a rate's interval, in percent: `[23.1, 88.2]`."""
    if rate.low is None or rate.high is None:
        return NOT_KNOWN
    return f"[{percentage(rate.low)}, {percentage(rate.high)}]"


def rate_with_interval(rate: Rate) -> str:
    """`60.0 % [23.1, 88.2]`; `n/a` where nothing was decided."""
    return NOT_KNOWN if rate.value is None else f"{percent(rate.value)} {interval(rate)}"


def bare_rate(rate: Rate) -> str:
    """A rate with its interval in percent, the sign left to the head: `60.0 [23.1, 88.2]`."""
    return NOT_KNOWN if rate.value is None else f"{percentage(rate.value)} {interval(rate)}"


def bounds(found: Bounds) -> str:
    """What undecided trials allow, with outer limits, in percent: `73.3 … 86.7 [44.2, 97.1]`; `–`: there are none."""
    if found.worst is None or found.best is None or found.low is None or found.high is None:
        return NOT_KNOWN
    if found.worst == found.best:
        return "–"
    return f"{percentage(found.worst)} … {percentage(found.best)} [{percentage(found.low)}, {percentage(found.high)}]"


def measure(found: Measure, write: Callable[[float | None], str]) -> str:
    """A figure with its interval, `1.11 [0.90, ?]`; one that lies beyond a limit is `over 300`."""
    if found.value is None:
        return NOT_KNOWN if found.low is None else f"over {write(found.low)}"
    if found.low is None and found.high is None:
        return write(found.value)
    low, high = (OPEN if end is None else write(end) for end in (found.low, found.high))
    return f"{write(found.value)} [{low}, {high}]"


def probability(p: float | None) -> str:
    """A p value with two figures, and never as nothing: `0.74`, `0.0031`, `<0.0001`."""
    if p is None:
        return NOT_KNOWN
    return "<0.0001" if p < 0.0001 else f"{p:.2g}"


def points(share: float | None) -> str:
    """A difference of rates in percentage points: `2.6`."""
    return NOT_KNOWN if share is None else f"{100 * share:.1f}"


def per_question(mean: float | None) -> str:
    """A mean per question: one decimal below 100, none above."""
    if mean is None:
        return NOT_KNOWN
    return f"{mean:.1f}" if mean < 100 else f"{mean:,.0f}"


def seconds(duration_s: float | None) -> str:
    """Seconds without their unit: three decimals below 1, two below 10, one below 100, none above."""
    if duration_s is None:
        return NOT_KNOWN
    decimals = sum(duration_s < limit for limit in (1, 10, 100))
    return f"{duration_s:,.{decimals}f}"


def cost(usd: float | None) -> str:
    """`unknown`, `$0.00`, `$0.0042`, `$12.30`; a cost above nothing is never written as nothing."""
    if usd is None:
        return "unknown"
    if 0 < usd < 0.00005:
        return "<$0.0001"
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:,.2f}"


def tokens(count: int | None) -> str:
    """A count of tokens: `1,024`."""
    return NOT_KNOWN if count is None else f"{count:,}"


def moment(epoch_s: float) -> str:
    """Seconds since the epoch as `2026-01-31 08:05:09 UTC`."""
    return datetime.fromtimestamp(epoch_s, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
