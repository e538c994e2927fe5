"""The pictures of the page: small functions from figures to inline SVG, with no script and nothing to fetch.

Meaning is in shape, length and darkness, so a print in black and white loses nothing; colour comes from the page's
style, which knows light and dark. Every picture stands beside a table of the same figures.
"""

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from evalfarm.contracts.verdict import CaseSummary, CellSummary, RateOfK, Verdict
from evalfarm.reports import numbers
from evalfarm.reports.run import findings
from evalfarm.reports.run.pairs import Pair

_WIDTH = 720.0
_LABEL = 210.0
"""Room for the words on the left, in pixels."""
_ROW, _SLIM_ROW = 13.0, 9.0
_MANY_CASES = 40
"""With more of them than this the rows of a heat map are slim."""
_LOLLIPOP = Markup(
    '<g><title>{}</title><path class="whisker" d="M{x} {zero}V{y}"/>'
    '<circle class="point" cx="{x}" cy="{y}" r="2.5"/></g>'
)


def heat_map(cases: Sequence[CaseSummary]) -> Markup:
    """One arm: a row per case in the order given, a column per repeat; strong is failed, faint passed."""
    repeats = max((len(case.verdicts) for case in cases), default=0)
    slim = len(cases) > _MANY_CASES
    height = _SLIM_ROW if slim else _ROW
    step = min(height, (_WIDTH - _LABEL) / max(repeats, 1))
    marks: dict[Verdict, list[str]] = {}
    labels = []
    for row, case in enumerate(cases):
        y = row * height
        labels.append(_text(_LABEL - 8, y + height - 2.5, _short(case.case), "end", small=slim))
        for column, verdict in enumerate(case.verdicts):
            marks.setdefault(verdict, []).append(_mark(verdict, _LABEL + column * step, y, (step - 1, height - 1)))
    paths = [Markup('<path class="heat-{}" d="{}"/>').format(verdict, "".join(of)) for verdict, of in marks.items()]
    return _svg(_LABEL + repeats * step, len(cases) * height, "Case by repeat, steadiest first", [*labels, *paths])


def latencies(cells: Sequence[CellSummary]) -> Markup:
    """Per arm on one log axis: a line from p10 to p90, thick from p30 to p70, with a dot at p50 and a bar at p95."""
    shown = [cell for cell in cells if any(cell.latency_measures_s.deciles)]
    seen = [s for cell in shown for s in (*cell.latency_measures_s.deciles, cell.latency_s.p95) if s]
    if not seen:
        return Markup()
    axis = _LogAxis(min(seen), max(seen))
    height = len(shown) * 26.0
    parts = [axis.drawn(height)]
    for row, cell in enumerate(shown):
        y = row * 26.0 + 13
        parts.append(_text(_LABEL - 8, y + 4, _short(findings.arm(cell)), "end"))
        parts += _deciles(axis, cell, y)
    return _svg(_WIDTH, height + 24, "Latency in seconds by arm, on a log axis", parts)


def flips_by_repeats(curve: Sequence[RateOfK]) -> Markup:
    """One arm: the flip rate that k repeats would show, with its interval, against k on a log axis."""
    points = [(of.k, of.rate) for of in curve if of.rate.value is not None]
    if not points:
        return Markup()
    width, height, left = 300.0, 150.0, 40.0
    top = max(0.1, math.ceil(10 * max(rate.high or 0.0 for _, rate in points)) / 10)
    span = math.log(points[-1][0] / points[0][0]) or 1.0
    x = [left + 12 + (width - left - 30) * math.log(k / points[0][0]) / span for k, _ in points]

    def y(share: float | None) -> float:
        return 10 + (height - 40) * (1 - (share or 0.0) / top)

    parts = [
        Markup('<path class="axis" d="M{} {}V{}H{}"/>').format(*map(_n, (left, 10, height - 30, width))),
        _text(left - 5, y(top) + 4, f"{100 * top:.0f} %", "end"),
        _text(left - 5, y(0) + 4, "0", "end"),
        *(
            Markup('<path class="whisker" d="M{0} {1}V{2}"/>').format(_n(at), _n(y(rate.low)), _n(y(rate.high)))
            for at, (_, rate) in zip(x, points, strict=True)
        ),
        Markup('<path class="line" d="M{}"/>').format(
            "L".join(f"{_n(at)} {_n(y(rate.value))}" for at, (_, rate) in zip(x, points, strict=True))
        ),
    ]
    for at, (k, rate) in zip(x, points, strict=True):
        parts.append(Markup('<circle class="point" cx="{}" cy="{}" r="3"/>').format(_n(at), _n(y(rate.value))))
        parts.append(_text(at, height - 14, str(k), "middle"))
    return _svg(width, height, "Flip rate against the number of repeats", parts)


def paired_differences(pair: Pair) -> Markup:
    """Per case the candidate's pass share less the baseline's, worst first; the band is the mean's interval."""
    height, left = 220.0, 60.0
    step = min(18.0, (_WIDTH - left) / max(len(pair.differences), 1))
    right = left + step * len(pair.differences)

    def y(difference: float) -> float:
        return 10 + (height - 20) * (1 - difference) / 2

    parts = []
    low, high, mean = pair.mean.low, pair.mean.high, pair.mean.value
    if low is not None and high is not None:
        area = map(_n, (left, y(high), right - left, y(low) - y(high)))
        parts.append(Markup('<rect class="band" x="{}" y="{}" width="{}" height="{}"/>').format(*area))
    for share, label in ((1.0, "+100"), (0.0, "0"), (-1.0, "−100")):
        parts.append(_text(left - 6, y(share) + 4, label, "end"))
        parts.append(Markup('<path class="track" d="M{} {}H{}"/>').format(_n(left), _n(y(share)), _n(right)))
    for at, (case, difference) in enumerate(pair.differences):
        x = left + (at + 0.5) * step
        said = f"{case}: {numbers.points(difference)} points"
        parts.append(_LOLLIPOP.format(said, x=_n(x), zero=_n(y(0)), y=_n(y(difference))))
    if mean is not None:
        parts.append(Markup('<path class="mean" d="M{} {}H{}"/>').format(_n(left), _n(y(mean)), _n(right)))
    return _svg(right + 4, height, "Difference per case, in points", parts)


class _LogAxis:
    """Seconds to pixels on a log scale, from the powers of ten around what is shown."""

    def __init__(self, lowest: float, highest: float) -> None:
        self._first = math.floor(math.log10(lowest))
        self._last = max(math.ceil(math.log10(highest)), self._first + 1)

    def x(self, seconds: float) -> float:
        share = (math.log10(seconds) - self._first) / (self._last - self._first)
        return _LABEL + (_WIDTH - _LABEL - 30) * min(max(share, 0.0), 1.0)

    def drawn(self, height: float) -> Markup:
        """A grid line and a label per power of ten."""
        powers = [10.0**power for power in range(self._first, self._last + 1)]
        return Markup().join(
            Markup('<path class="track" d="M{} 0V{}"/>{}').format(
                _n(self.x(at)), _n(height), _text(self.x(at), height + 16, f"{at:g} s", "middle")
            )
            for at in powers
        )


def _deciles(axis: _LogAxis, cell: CellSummary, y: float) -> list[Markup]:
    """A quantile beyond the time limit is not drawn: the line ends in an arrow's place, at the last one known."""
    known = [seconds for seconds in cell.latency_measures_s.deciles if seconds is not None and seconds > 0]
    parts = [Markup('<path class="whisker" d="M{} {}H{}"/>').format(_n(axis.x(known[0])), _n(y), _n(axis.x(known[-1])))]
    inner = known[2:7]
    if inner:
        parts.append(
            Markup('<path class="thick" d="M{} {}H{}"/>').format(_n(axis.x(inner[0])), _n(y), _n(axis.x(inner[-1])))
        )
    if cell.latency_s.p50:
        parts.append(
            Markup('<circle class="point" cx="{}" cy="{}" r="4"/>').format(_n(axis.x(cell.latency_s.p50)), _n(y))
        )
    if cell.latency_s.p95:
        parts.append(Markup('<path class="line" d="M{} {}v12"/>').format(_n(axis.x(cell.latency_s.p95)), _n(y - 6)))
    return parts


def _mark(verdict: Verdict, x: float, y: float, size: tuple[float, float]) -> str:
    """A trial as part of a path: the whole field, or a smaller form for what is neither passed nor failed."""
    width, height = size
    match verdict:
        case "inconclusive":
            y, height = y + height / 2, height / 2
        case "infra_failed":
            x, y, width, height = x + width / 3, y + height / 3, width / 3, height / 3
        case "not_run":
            y, height = y + height / 2, 1.0
    return f"M{_n(x)} {_n(y)}h{_n(width)}v{_n(height)}h-{_n(width)}z"


def _text(x: float, y: float, words: str, anchor: str, *, small: bool = False) -> Markup:
    size = Markup(' class="small"') if small else Markup()
    return Markup('<text x="{}" y="{}" text-anchor="{}"{}>{}</text>').format(_n(x), _n(y), anchor, size, words)


def _short(words: str, most: int = 34) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _svg(width: float, height: float, label: str, parts: Iterable[Markup]) -> Markup:
    return Markup(
        '<svg class="plot" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" aria-label="{2}">{3}</svg>'
    ).format(_n(width), _n(height), label, Markup().join(parts))


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
