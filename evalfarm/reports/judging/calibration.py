"""The report of a calibration: what is wrong with the judge first, then every figure with its denominator."""

from collections.abc import Iterator, Sequence

from evalfarm.contracts.calibration import Calibration, ErrorRates, Share
from evalfarm.reports.comparison.blocks import Block, Listed, Said, Typed
from evalfarm.reports.judging.disagreements import told
from evalfarm.reports.numbers import cost, interval, measure, percent, plural, probability, rate_with_interval
from evalfarm.reports.table import Table

_SHOWN_DISAGREEMENTS = 10
_SHOWN_ANSWER = 160


def report(found: Sequence[Calibration]) -> list[Block]:
    """One judge after the other, and how far they agree among themselves."""
    return [block for one in found for block in _judge(one)]


def _judge(found: Calibration) -> Iterator[Block]:
    yield from _opening(found)
    yield from _what(found)
    yield _errors(found)
    yield from _slices(found)
    yield _bias(found)
    if found.other_judges:
        yield _others(found)
    if found.corrected:
        yield _corrected(found)
    yield from _disagreements(found)


def _opening(found: Calibration) -> Iterator[Block]:
    count = len(found.findings)
    told = plural(count, "fault") if count else "no fault that these labels could show"
    yield Said(f"{found.judge.model}: {told}", finding=True)
    yield from (Said(finding, finding=True) for finding in found.findings)
    if found.false_accept_at_most is None:
        yield Said("No wrong answer was judged, so nothing is known of false acceptance.", finding=not count)
        return
    rate = found.overall.false_accept
    told = f"False acceptance {_hits(rate)}: with 95 % confidence at most {percent(found.false_accept_at_most)}"
    yield Said(f"{told}; false rejection {_hits(found.overall.false_reject)}.", finding=not count)


def _what(found: Calibration) -> Iterator[Block]:
    simulated = "; a simulated judge" if found.simulated else ""
    yield Said(f"Suite {found.suite} {found.suite_version}, {_instrument(found)}{simulated}.")
    left_out = f", {found.disputed} of them disputed and left out" if found.disputed else ""
    changed = f", {found.adjudicated} with a label from adjudication" if found.adjudicated else ""
    yield Said(
        f"{plural(found.answers, 'labelled answer')} for {found.purpose}{left_out}{changed}; "
        f"{found.decided} decided, {found.abstained.hits} left open by the judge, {found.failed.hits} without a label."
    )
    uses = found.uses
    yield Said(
        f"These labels were used {plural(uses.times, 'time')}, by {plural(uses.judges, 'judge')}, "
        f"this one in {plural(uses.versions, 'version')}."
    )
    yield Said(f"{plural(found.requests, 'request')}, {cost(found.cost_usd)}.")


def _instrument(found: Calibration) -> str:
    judge = found.judge
    if not judge.rubrics:
        return f"facts, read by version {judge.prompt_version} of the rules"
    return f"prompt {judge.prompt_version}, rubrics {', '.join(judge.rubrics)}"


def _errors(found: Calibration) -> Table:
    rates = found.overall
    rows = (
        ("false acceptance", _hits(rates.false_accept), rate_with_interval(rates.false_accept)),
        ("false rejection", _hits(rates.false_reject), rate_with_interval(rates.false_reject)),
        ("no label (outage, refusal, unusable)", _hits(found.failed), rate_with_interval(found.failed)),
        ("abstained", _hits(found.abstained), rate_with_interval(found.abstained)),
        ("raw agreement", str(found.decided), percent(found.raw_agreement)),
        ("kappa", str(found.decided), measure(found.kappa, _plain)),
        ("prevalence: passed by people", str(found.decided), percent(found.human_pass_share)),
        ("self-disagreement D", f"{plural(found.repeats, 'judging')}", rate_with_interval(found.self_disagreement)),
    )
    note = "Kappa says little where nearly all answers have one label: read it with the prevalence."
    return Table(f"{found.judge.model} against people", ("figure", "of", "95 %"), rows, words=1, note=note)


def _slices(found: Calibration) -> Iterator[Block]:
    for title, slices in (
        ("By length: does length buy passes?", found.by_length),
        ("By category of the case", found.by_category),
        ("By kind of answer", found.by_kind),
        ("By criterion", found.by_criterion),
    ):
        if slices:
            heads = ("slice", "answers", "false acceptance", "false rejection")
            yield Table(title, heads, tuple(map(_slice, slices)), words=1)


def _slice(rates: ErrorRates) -> tuple[str, ...]:
    return (rates.name, str(rates.answers), *(_whole(rate) for rate in (rates.false_accept, rates.false_reject)))


def _whole(rate: Share) -> str:
    return f"{_hits(rate)} {interval(rate)}" if rate.of else "–"


def _bias(found: Calibration) -> Table:
    longer, pairs = found.length, found.pairs
    rows = (
        ("longer of two of equal worth passes", percent(longer.longer_passes), f"p {probability(longer.p)}"),
        ("pairs judged in both orders", str(pairs.pairs), f"{pairs.failed} not judged"),
        ("the order decided", _hits(pairs.order_decided), rate_with_interval(pairs.order_decided)),
        ("… for the first place", f"{pairs.first_wins} of {pairs.order_decided.hits}", f"p {probability(pairs.p)}"),
        ("right answer preferred, of the rest", _hits(pairs.right), rate_with_interval(pairs.right)),
    )
    return Table("Length and order", ("figure", "value", "evidence"), rows, words=1)


def _others(found: Calibration) -> Table:
    rows = tuple(
        (one.other, str(one.answers), percent(one.raw), measure(one.kappa, _plain), percent(one.pass_share))
        for one in found.other_judges
    )
    heads = ("other judge", "answers", "raw", "kappa", f"passed by {found.judge.model}")
    return Table("Judges among themselves", heads, rows, words=1)


def _corrected(found: Calibration) -> Table:
    rows = tuple(
        (one.run, one.arm, rate_with_interval(one.judged), measure(one.corrected, _share)) for one in found.corrected
    )
    note = "Corrected for the error rates above (Rogan and Gladen; interval of Lang and Reiczigel)."
    return Table("Pass rates as people would give them", ("run", "arm", "by the judge", "corrected"), rows, 2, note)


def _disagreements(found: Calibration) -> Iterator[Block]:
    shown = found.disagreements[:_SHOWN_DISAGREEMENTS]
    lines = [f"{one.place}: {told(one)} ({one.cites}): “{_short(one.answer)}”" for one in shown]
    more = len(found.disagreements) - len(shown)
    if more:
        lines.append(f"… and {more} more, with --json")
    if lines:
        yield Listed(f"{plural(len(found.disagreements), 'disagreement')}, open until adjudicated", tuple(lines))
        yield Said("Settle them with")
        yield Typed(f"evalfarm adjudicate {found.id}")


def _hits(rate: Share) -> str:
    return f"{rate.hits} of {rate.of}"


def _plain(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return percent(value)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_ANSWER else line[: _SHOWN_ANSWER - 1] + "…"
