"""From the opinions of one judge or several to the label of the grader `judge`. Pure.

Judges that disagree leave the answer INCONCLUSIVE: nothing averages a disagreement away.
"""

from collections.abc import Sequence

from evalfarm.contracts.judging import JUDGE, Opinion, TrialOpinions
from evalfarm.contracts.run import Plan
from evalfarm.contracts.verdict import Label, Result
from graders.judge.prompt import VERSION
from graders.verdict_table import verdict_of

_SHOWN = 200


def label_of(opinions: Sequence[Opinion]) -> Label:
    """The judges' label: what all of them say. Reasons name the criterion, and the judge where there are several."""
    values = {opinion.value for opinion in opinions}
    if len(values) == 1:
        return Label(grader=JUDGE, version=VERSION, value=opinions[0].value, reasons=_reasons(opinions))
    told = "; ".join(f"{opinion.judge} says {opinion.value}" for opinion in opinions)
    return Label(
        grader=JUDGE,
        version=VERSION,
        value="INCONCLUSIVE",
        reasons=(f"the judges disagree: {told}", *_reasons(opinions)),
    )


def conclude(plan: Plan, result: Result, attempts: Sequence[TrialOpinions], why: str) -> Result:
    """A result with its judges' label, and the verdict that it then is.

    `attempts` are all attempts at judging it; without one, the label is INCONCLUSIVE, and `why` says why.
    """
    last = counted(attempts) or (attempts[-1] if attempts else None)
    label = _unjudged(why) if last is None else label_of(last.opinions)
    return judged(plan, result, label)


def judged(plan: Plan, result: Result, label: Label) -> Result:
    """A result with this label of its judges in the place of any other."""
    labels = (*(one for one in result.labels if one.grader != JUDGE), label)
    verdict = verdict_of(result.outcome, labels, plan.suite.verdict)
    return result.model_copy(update={"labels": labels, "verdict": verdict})


def counted(attempts: Sequence[TrialOpinions]) -> TrialOpinions | None:
    """The attempt at judging that counts: the first in which every judge was reached; None: there is none."""
    return next((one for one in attempts if not one.outage), None)


def _unjudged(why: str) -> Label:
    return Label(grader=JUDGE, version=VERSION, value="INCONCLUSIVE", reasons=(why,))


def _reasons(opinions: Sequence[Opinion]) -> tuple[str, ...]:
    several = len(opinions) > 1
    return tuple(
        (f"{opinion.judge}: " if several else "") + reason for opinion in opinions for reason in _reasons_of(opinion)
    )


def _reasons_of(opinion: Opinion) -> list[str]:
    if opinion.failure is not None:
        return [f"the judge gave no label: {opinion.failure}"]
    words = {"FAIL": "fails", "INCONCLUSIVE": "cannot be told"}
    return [
        f"{words[label.value]} {label.criterion!r}: {_short(label.reason)}"
        + (f" (“{_short(label.quote)}”)" if label.quote else "")
        for label in opinion.labels
        if label.value != "PASS"
    ]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
