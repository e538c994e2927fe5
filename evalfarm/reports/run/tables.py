"""The figures of a report as tables, the same in every rendering; what is not known is said, never left blank."""

from collections.abc import Callable, Sequence

from evalfarm.contracts.figures import Latency, Measure, PerQuestion
from evalfarm.contracts.verdict import CellSummary, RateOfK, RunSummary
from evalfarm.reports import numbers
from evalfarm.reports.run import findings
from evalfarm.reports.table import Table

_ARM = ("model", "harness", "variant")
STEADINESS = (
    "Flipped: cases that both passed and failed, more of them the more repeats; the flip rate is their share. D: the"
    " chance that two reruns of a case end differently, whatever the repeats."
)


def core(summary: RunSummary) -> tuple[Table, ...]:
    """What every report shows of its arms; a table that would say nothing is left out."""
    cells = summary.cells
    found = [trials(cells), rates(cells)]
    if any(cell.flip_rate.cases for cell in cells):
        found += [steadiness(cells), repeats(cells)]
    if any(cell.tool_calls.cases or cell.reasoning_tokens.cases for cell in cells):
        found.append(effort(cells))
    if any(cell.latency_measures_s.trials for cell in cells):
        found.append(latency(cells))
    return (*found, cost(cells))


def detail(summary: RunSummary) -> tuple[Table, ...]:
    """What is told beyond that, where there is room."""
    tools = per_question("Tool calls per question", summary.cells, lambda cell: cell.tool_calls)
    thoughts = per_question("Reasoning tokens per question", summary.cells, lambda cell: cell.reasoning_tokens)
    return tuple(table for table in (tools, thoughts, attempts(summary.cells)) if table.rows)


def trials(cells: Sequence[CellSummary]) -> Table:
    """The five counts of each arm."""
    heads = ("planned", "passed", "failed", "incon-\nclusive", "infra\nfailed", "not\nrun")
    return _of_arms(
        "Trials",
        heads,
        cells,
        lambda cell: tuple(
            f"{count:,}"
            for count in (cell.planned, cell.passed, cell.failed, cell.inconclusive, cell.infra_failed, cell.not_run)
        ),
        note="A row is an arm: one model × harness × variant." if cells[1:] else "",
    )


def rates(cells: Sequence[CellSummary]) -> Table:
    """Pass rates, and what the undecided trials allow."""
    families = any(cell.families is not None for cell in cells)
    bounds = ("had the undecided\nfailed … passed, %",) if any(_undecided(cell) for cell in cells) else ()
    return _of_arms(
        "Pass rate (mean over cases) with its 95 % interval for new cases of this kind",
        ("pass\nrate", "interval", *bounds),
        cells,
        lambda cell: (
            numbers.percent(cell.pass_rate.value),
            numbers.interval(cell.pass_rate),
            *([numbers.bounds(cell.pass_rate_bounds)] if bounds else []),
        ),
        note="Cases come in families, which are the unit of every interval." if families else "",
    )


def _undecided(cell: CellSummary) -> int:
    return cell.inconclusive + cell.infra_failed + cell.not_run


def steadiness(cells: Sequence[CellSummary]) -> Table:
    """Flips as observed, and D."""
    return _of_arms(
        "Steadiness",
        ("flipped\nat repeats", "flip rate, %", "D, %"),
        cells,
        lambda cell: (
            f"{cell.flip_rate.flipped:,} of {cell.flip_rate.cases:,} at {cell.flip_rate.repeats:,}",
            numbers.bare_rate(cell.flip_rate),
            numbers.bare_rate(cell.disagreement),
        ),
        note=STEADINESS,
    )


def repeats(cells: Sequence[CellSummary]) -> Table:
    """pass^k and pass@k at the largest k, and the spread of whole repeats."""
    most = _common_k(cells)

    def row(cell: CellSummary) -> tuple[str, ...]:
        spread = cell.repeat_spread
        reach = numbers.NOT_KNOWN
        if spread.lowest is not None and spread.highest is not None:
            reach = f"{numbers.percentage(spread.lowest)} … {numbers.percentage(spread.highest)}"
        sd = numbers.points(spread.sd_one_run.value)
        return (_at(cell.pass_hat_k, most), _at(cell.pass_at_k, most), reach, sd, findings.spread_verdict(spread))

    return _of_arms(
        f"All or any of {most} trials pass, and how far whole repeats lie apart",
        (f"pass^{most}\n%", f"pass@{most}\n%", "repeats, %\nfrom … to", "SD by\nnoise", "more than\nnoise?"),
        cells,
        row,
        note="SD by noise: by how many points reruns of one repeat vary. The test is Cochran's Q.",
    )


def _common_k(cells: Sequence[CellSummary]) -> int:
    """The most trials that every decided case of every arm has, of the k that are told."""
    short = {rate.k for cell in cells for rate in cell.pass_hat_k if rate.dropped}
    told = [{rate.k for rate in cell.pass_hat_k} for cell in cells if cell.pass_hat_k]
    return max(set.intersection(*told) - short, default=1) if told else 1


def effort(cells: Sequence[CellSummary]) -> Table:
    """Means per question."""
    return _of_arms(
        "Effort",
        ("calls/\nquestion", "median", "reasoning/\nquestion", "median"),
        cells,
        lambda cell: tuple(
            text
            for figure in (cell.tool_calls, cell.reasoning_tokens)
            for text in (
                numbers.measure(figure.mean, numbers.per_question),
                numbers.per_question(figure.median.value),
            )
        ),
    )


def latency(cells: Sequence[CellSummary]) -> Table:
    """Quantiles of the trials."""
    return _of_arms(
        "Latency in seconds, waiting for limits left out",
        ("p50", "p95", "timed out"),
        cells,
        lambda cell: (
            _seconds(cell.latency_measures_s.p50, cell.latency_measures_s.timeouts),
            _seconds(cell.latency_measures_s.p95, cell.latency_measures_s.timeouts),
            f"{cell.latency_measures_s.timeouts:,}",
        ),
        note=f"{numbers.OPEN}: not estimable with this many trials. A trial that timed out is longer than every other.",
    )


def _seconds(quantile: Measure, timeouts: int) -> str:
    if quantile.value is None and quantile.low is None and timeouts > 0:
        return "beyond limit"
    told = numbers.measure(quantile, numbers.seconds)
    open_ends = quantile.value is not None and quantile.low is None and quantile.high is None
    return f"{told} [{numbers.OPEN}, {numbers.OPEN}]" if open_ends else told


def cost(cells: Sequence[CellSummary]) -> Table:
    """Cost of the counted attempts, and the latency of single model requests."""
    return _of_arms(
        "Cost, and seconds of one model request",
        ("counted", "all at-\ntempts", "per\nques-\ntion", "per\npass", "request\np50 / p95"),
        cells,
        lambda cell: (
            numbers.cost(cell.cost.total_usd),
            numbers.cost(cell.cost.all_attempts_usd),
            numbers.cost(cell.cost.per_question_usd),
            numbers.cost(cell.cost.per_pass_usd),
            _both(cell.request_latency_s),
        ),
        note=_uncounted(cells),
    )


def _both(request_s: Latency) -> str:
    if request_s.p50 is None:
        return numbers.NOT_KNOWN
    return f"{numbers.seconds(request_s.p50)} / {numbers.seconds(request_s.p95)}"


def _uncounted(cells: Sequence[CellSummary]) -> str:
    counted = "Counted: the attempts that verdicts rest on; per question and per pass are of these."
    earlier = sum(cell.cost.uncounted_attempts for cell in cells)
    unknown = any(cell.cost.uncounted_attempts and cell.cost.all_attempts_usd is None for cell in cells)
    not_told = ", and what they cost is not known everywhere" if unknown else ""
    return f"{counted} Before them came {numbers.plural(earlier, 'attempt')}{not_told}." if earlier else counted


def per_question(title: str, cells: Sequence[CellSummary], of: Callable[[CellSummary], PerQuestion]) -> Table:
    """One figure per question in full, over the arms that report it."""

    def row(cell: CellSummary) -> tuple[str, ...]:
        figure, write = of(cell), numbers.per_question
        widest = numbers.NOT_KNOWN
        if figure.widest is not None:
            widest = f"{figure.widest} ({write(figure.widest_low)} … {write(figure.widest_high)})"
        return (
            numbers.measure(figure.mean, write),
            numbers.measure(figure.median, write),
            f"{write(figure.lowest)} … {write(figure.highest)}",
            write(figure.sd),
            widest,
            f"{figure.missing:,}",
        )

    heads = ("mean", "median", "cases from … to", "SD", "widest question", "not reported")
    return _of_arms(title, heads, [cell for cell in cells if of(cell).cases], row)


def attempts(cells: Sequence[CellSummary]) -> Table:
    """Pass rate by the number of the counted attempt, where some trial took more than one."""
    told = [(cell, rate) for cell in cells for rate in cell.pass_rate_by_attempt]
    retried = any(rate.attempt > 1 for _, rate in told)
    return Table(
        title="Pass rate by the number of the counted attempt",
        heads=(*_ARM, "attempt", "trials", "pass rate"),
        rows=tuple(
            (*_arm(cell), str(rate.attempt), f"{rate.trials:,}", numbers.rate_with_interval(rate.rate))
            for cell, rate in told
        )
        if retried
        else (),
    )


def _of_arms(
    title: str,
    heads: tuple[str, ...],
    cells: Sequence[CellSummary],
    row: Callable[[CellSummary], tuple[str, ...]],
    *,
    note: str = "",
) -> Table:
    return Table(title, (*_ARM, *heads), tuple((*_arm(cell), *row(cell)) for cell in cells), note=note)


def _arm(of: CellSummary) -> tuple[str, str, str]:
    return of.model, of.harness, of.variant


def _at(rates_of_k: Sequence[RateOfK], k: int) -> str:
    found = next((rate for rate in rates_of_k if rate.k == k), None)
    return numbers.NOT_KNOWN if found is None else numbers.percent(found.rate.value).removesuffix(" %")
