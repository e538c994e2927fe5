"""How a figure of conversations is written, and its change."""

from evalfarm.analysis.conversations.totals import RATES
from evalfarm.reports import numbers

NOTHING = "–"
_SECONDS = ("duration_s", "request_p50_s", "request_p95_s")


def written(figure: str, value: float | None) -> str:
    """A figure in its unit: `60.0 %`, `$0.0042`, `1.25` (seconds, or a mean count); `n/a` where it is not known."""
    if figure in RATES:
        return numbers.percent(value)
    if figure == "cost_usd":
        return numbers.cost(value)
    return numbers.seconds(value) if figure in _SECONDS else plain(value)


def change(figure: str, value: float | None, before: float | None) -> str:
    """From `before` to `value`: `+3.1 points` of a share, `+25.0 %` of anything else, `–` where one is not known."""
    if value is None or before is None:
        return NOTHING
    if value == before:
        return "none"
    if figure in RATES:
        return f"{100 * (value - before):+.1f} points"
    return f"+{written(figure, value)}" if before == 0 else f"{100 * (value / before - 1):+.1f} %"


def plain(value: float | None) -> str:
    """A mean count: two decimals below 100, none above."""
    if value is None:
        return numbers.NOT_KNOWN
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
