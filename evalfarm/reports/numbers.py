"""How a number is written: the same in every report, and never more than is known."""

from datetime import UTC, datetime

from evalfarm.contracts.verdict import FlipRate, Rate

NOT_KNOWN = "n/a"


def plural(count: int, noun: str) -> str:
    """`1 case`, `3 cases`, `1,200 cases`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def percent(share: float | None) -> str:
    """A share of 0 … 1 as `60.0 %`; `100.0 %` and `0.0 %` are said only of exactly all and none."""
    return NOT_KNOWN if share is None else f"{_percentage(share)} %"


def interval(rate: Rate) -> str:
    """The limits of a rate's interval, in percent: `[23.1, 88.2]`."""
    if rate.low is None or rate.high is None:
        return NOT_KNOWN
    return f"[{_percentage(rate.low)}, {_percentage(rate.high)}]"


def rate_with_interval(rate: Rate) -> str:
    """`60.0 % [23.1, 88.2]`; `n/a` where nothing was decided."""
    return NOT_KNOWN if rate.value is None else f"{percent(rate.value)} {interval(rate)}"


def flips(rate: FlipRate) -> str:
    """`2 of 5 cases at 3 repeats`; a flip rate means nothing without its repeats."""
    seen = f"{rate.flipped:,} of {plural(rate.cases, 'case')}" if rate.cases else NOT_KNOWN
    return f"{seen} at {plural(rate.repeats, 'repeat')}"


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


def _percentage(share: float) -> str:
    percentage = 100 * share
    if 0 < share < 1:
        # 2999 of 3000 is not all of them, and rounding must not say so.
        percentage = min(max(percentage, 0.1), 99.9)
    return f"{percentage:.1f}"
