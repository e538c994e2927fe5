"""A judge held against people's labels: the one document of `evalfarm calibrate`.

Only the first judging of each answer counts for error rates; further ones tell how steady the judge is. An answer
that either side left open takes no part in an error rate, and is counted beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evalfarm.analysis.judgement.disagreements import RULES
from evalfarm.analysis.judgement.targets import Judged
from evalfarm.analysis.statistics.judge_bias import at_most, even_odds, rank_shift
from evalfarm.analysis.statistics.judges import Agreement, agreement
from evalfarm.analysis.statistics.stats import Estimate, critical_z, wilson
from evalfarm.analysis.statistics.steadiness import label_disagreement
from evalfarm.contracts.calibration import (
    Calibration,
    ErrorRates,
    JudgeAgreement,
    LengthEffect,
    PairFigures,
    Share,
    Uses,
)
from evalfarm.contracts.figures import Measure
from evalfarm.contracts.judging import JUDGE, PEOPLE, Disagreement, JudgeIdentity, PairOpinion, Purpose
from evalfarm.contracts.verdict import LabelValue

_VALUES: tuple[LabelValue, ...] = ("PASS", "FAIL", "INCONCLUSIVE")
_LENGTHS = ("short", "middle", "long")


@dataclass(frozen=True, slots=True)
class About:
    """What a calibration is of."""

    id: str
    at: float  #: seconds since the epoch
    judge: JudgeIdentity
    simulated: bool
    suite: str
    suite_version: str
    labels: str
    purpose: Purpose
    uses: Uses


def calibrate(
    about: About, judged: Sequence[Judged], pairs: Sequence[PairOpinion], costs: Sequence[float | None], requests: int
) -> Calibration:
    """The calibration of one judge. `judged` is every answer of the file, `costs` and `requests` are of everything."""
    kept = [one for one in judged if one.target.reference != "INCONCLUSIVE"]
    both = [one for one in kept if one.both_decided]
    found = _agreement(both)
    failed = sum(one.opinions[0].failure is not None for one in kept)
    abstained = sum(one.value == "INCONCLUSIVE" for one in kept) - failed
    overall = error_rates("all", both)
    return Calibration(
        **{name: getattr(about, name) for name in About.__slots__},
        judge_digest=about.judge.digest,
        answers=len(judged),
        disputed=len(judged) - len(kept),
        adjudicated=sum(one.target.adjudicated for one in judged),
        repeats=max((len(one.opinions) for one in judged), default=0),
        decided=len(both),
        abstained=share(abstained, len(kept)),
        failed=share(failed, len(kept)),
        overall=overall,
        false_accept_at_most=at_most(overall.false_accept.hits, overall.false_accept.of),
        raw_agreement=found.raw,
        kappa=_measure(found.kappa),
        human_pass_share=found.human_pass_share,
        by_category=_sliced(both, lambda one: one.target.category),
        by_kind=_sliced(both, lambda one: one.target.answer.kind),
        by_length=_by_length(both),
        by_criterion=_by_criterion(kept) if about.judge.rubrics else (),
        length=_length_effect(both),
        pairs=pair_figures(pairs),
        self_disagreement=label_disagreement(*_repeated(kept)),
        disagreements=tuple(_disagreement(about, one) for one in both if one.value != one.target.reference),
        findings=(),
        requests=requests,
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def between_judges(one: Sequence[Judged], other: Sequence[Judged], name: str) -> JudgeAgreement:
    """How far two judges agree on the same answers, aligned; `name` is the other's."""
    told = [(a.value, b.value) for a, b in zip(one, other, strict=True) if "INCONCLUSIVE" not in (a.value, b.value)]
    found = agreement(
        told.count(("PASS", "PASS")),
        told.count(("PASS", "FAIL")),
        told.count(("FAIL", "PASS")),
        told.count(("FAIL", "FAIL")),
    )
    return JudgeAgreement(
        other=name, answers=len(told), raw=found.raw, kappa=_measure(found.kappa), pass_share=found.human_pass_share
    )


def error_rates(name: str, both: Sequence[Judged]) -> ErrorRates:
    """False acceptance and false rejection over answers that judge and person both decided."""
    return _rates(name, [(one.value, one.target.reference) for one in both])


def share(hits: int, of: int) -> Share:
    """A share with Wilson's interval."""
    if of == 0:
        return Share(value=None, low=None, high=None, hits=0, of=0)
    low, high = wilson(hits / of, of, critical_z())
    return Share(value=hits / of, low=low, high=high, hits=hits, of=of)


def pair_figures(pairs: Sequence[PairOpinion]) -> PairFigures:
    """What the order did over pairs whose first answer, in order, is the right one."""
    whole = [pair for pair in pairs if not pair.failed]
    moved = [pair for pair in whole if pair.place is not None]
    first_wins = sum(pair.place == "first" for pair in moved)
    settled = [pair for pair in whole if pair.place is None]
    return PairFigures(
        pairs=len(whole),
        failed=len(pairs) - len(whole),
        order_decided=share(len(moved), len(whole)),
        first_wins=first_wins,
        p=even_odds(first_wins, len(moved)),
        right=share(sum(pair.better == "first" for pair in settled), len(settled)),
    )


def _rates(name: str, told: Sequence[tuple[LabelValue, LabelValue]]) -> ErrorRates:
    failed = [judge for judge, person in told if person == "FAIL"]
    passed = [judge for judge, person in told if person == "PASS"]
    return ErrorRates(
        name=name,
        answers=len(told),
        false_accept=share(failed.count("PASS"), len(failed)),
        false_reject=share(passed.count("FAIL"), len(passed)),
    )


def _agreement(both: Sequence[Judged]) -> Agreement:
    told = [(one.target.reference, one.value) for one in both]
    return agreement(
        told.count(("PASS", "PASS")),
        told.count(("PASS", "FAIL")),
        told.count(("FAIL", "PASS")),
        told.count(("FAIL", "FAIL")),
    )


def _sliced(both: Sequence[Judged], of: Callable[[Judged], str]) -> tuple[ErrorRates, ...]:
    names = sorted({of(one) for one in both})
    return tuple(error_rates(name, [one for one in both if of(one) == name]) for name in names)


def _by_length(both: Sequence[Judged]) -> tuple[ErrorRates, ...]:
    """Thirds by words; answers of one length are in one third."""
    if len({one.target.words for one in both}) < len(_LENGTHS):
        return ()
    edges = np.quantile([one.target.words for one in both], [1 / 3, 2 / 3], method="inverted_cdf")
    parts: list[list[Judged]] = [[], [], []]
    for one in both:
        parts[int((one.target.words > edges).sum())].append(one)
    return tuple(
        error_rates(f"{name}, {min(words)} to {max(words)} words", part)
        for name, part in zip(_LENGTHS, parts, strict=True)
        if (words := [one.target.words for one in part])
    )


def _by_criterion(kept: Sequence[Judged]) -> tuple[ErrorRates, ...]:
    """Over answers whose label is the file's: an adjudication says nothing of single criteria."""
    told: dict[str, list[tuple[LabelValue, LabelValue]]] = {}
    for one in kept:
        for label in one.opinions[0].labels if not one.target.adjudicated else ():
            person: LabelValue = "FAIL" if label.criterion in one.target.answer.fails else "PASS"
            if label.value != "INCONCLUSIVE":
                told.setdefault(label.criterion, []).append((label.value, person))
    return tuple(_rates(name, pairs) for name, pairs in told.items())


def _length_effect(both: Sequence[Judged]) -> LengthEffect:
    # Within each label of the person's: long answers may be right more often, which is no bias.
    longer, p = rank_shift(
        [one.target.words for one in both],
        [one.value == "PASS" for one in both],
        [one.target.reference for one in both],
    )
    return LengthEffect(longer_passes=longer, p=p)


def _repeated(kept: Sequence[Judged]) -> tuple[list[list[int]], list[str]]:
    """How often each answer got which label, and the case of each: answers to one case are alike."""
    told = [[opinion.value for opinion in one.opinions] for one in kept]
    return [[values.count(value) for value in _VALUES] for values in told], [one.target.answer.case for one in kept]


def _disagreement(about: About, one: Judged) -> Disagreement:
    answer, who = one.target.answer, JUDGE if about.judge.rubrics else RULES
    return Disagreement(
        place=answer.id,
        case=answer.case,
        request=one.target.exhibit.turns[-1].query,
        evidence=one.target.exhibit.evidence,
        answer=answer.answer,
        labels={who: one.value, PEOPLE: one.target.reference},
        cites=answer.cites,
        reasons=tuple(f"{label.criterion}: {label.reason}" for label in one.opinions[0].labels if label.reason),
    )


def _measure(estimate: Estimate) -> Measure:
    return Measure(value=estimate.value, low=estimate.low, high=estimate.high)
