"""The answers of a run on which labels disagree: rules against judge, and either against people. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from evalfarm.contracts.judging import JUDGE, PEOPLE, Adjudication, Disagreement, LabelledAnswer, subject_of
from evalfarm.contracts.run import Plan, Trace
from evalfarm.contracts.verdict import LabelValue, Result

RULES = "answer"
"""The grader that judges an answer by rules."""


def references(labelled: Iterable[LabelledAnswer], decisions: Iterable[Adjudication]) -> dict[str, LabelValue]:
    """People's labels by what they are of (`subject_of`); a decision outweighs a file, a later one an earlier."""
    known: dict[str, LabelValue] = {subject_of(one.case, one.answer): one.label for one in labelled}
    return known | {one.subject: one.value for one in decisions}


def disagreements(
    plan: Plan, answered: Iterable[tuple[Result, Trace]], known: Mapping[str, LabelValue]
) -> tuple[Disagreement, ...]:
    """Every answer that some label passes and another fails, in the order of the trials; equal answers once.

    `known` are people's labels (`references`).
    """
    found: dict[str, Disagreement] = {}
    for result, trace in answered:
        labels = dict(_labels(result, trace, known))
        if {"PASS", "FAIL"} <= set(labels.values()):
            one = to_decide(plan, trace, labels, _reasons(result, labels))
            found.setdefault(one.subject, one)
    return tuple(found.values())


def still_open(found: Iterable[Disagreement], decisions: Iterable[Adjudication]) -> tuple[Disagreement, ...]:
    """Those that nobody has decided on yet."""
    decided = {one.subject for one in decisions}
    return tuple(one for one in found if one.subject not in decided)


def apart(result: Result) -> bool:
    """Whether rules and judge say the opposite of each other."""
    return {"PASS", "FAIL"} <= {label.value for label in result.labels if label.grader in (RULES, JUDGE)}


def to_decide(plan: Plan, trace: Trace, labels: dict[str, LabelValue], reasons: tuple[str, ...] = ()) -> Disagreement:
    """An answer as a reviewer is shown it; without `labels` and `reasons`, which are those of graders, unbiased."""
    reference = plan.suite.case(trace.trial.case).reference
    return Disagreement(
        place=f"{trace.run}/{trace.trial.index}",
        case=trace.trial.case,
        request=trace.turns[-1].query,
        evidence=trace.served_calls,
        answer=trace.answer,
        labels=labels,
        reasons=reasons,
        cites="" if reference is None else ", ".join(reference.rests_on),
    )


def _labels(result: Result, trace: Trace, known: Mapping[str, LabelValue]) -> Iterator[tuple[str, LabelValue]]:
    yield from ((label.grader, label.value) for label in result.labels if label.grader in (RULES, JUDGE))
    if (person := known.get(subject_of(trace.trial.case, trace.answer))) is not None:
        yield PEOPLE, person


def _reasons(result: Result, labels: Mapping[str, LabelValue]) -> tuple[str, ...]:
    told = (label for label in result.labels if label.grader in labels)
    return tuple(f"{label.grader}: {reason}" for label in told for reason in label.reasons)
