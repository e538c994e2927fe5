"""From a trace, or from a labelled answer, to what a judge is shown. Pure."""

from collections.abc import Collection

from evalfarm.contracts.answer import Rubric
from evalfarm.contracts.judging import Exhibit, LabelledAnswer
from evalfarm.contracts.run import ToolCall, Trace, Turn
from evalfarm.contracts.suite import Case, Suite


def exhibit_of(trace: Trace) -> Exhibit | None:
    """What a trace shows of its answer: the calls as the tools' side saw them; None: nothing was answered.

    The trace is as it was stored, so what was redacted stays so.
    """
    if not trace.answer.strip():
        return None
    calls = tuple(
        ToolCall(name=call.name, arguments=call.arguments, result=call.result, error=call.error)
        for call in trace.served_calls
    )
    return Exhibit(turns=trace.turns, evidence=calls)


def labelled_exhibit(suite: Suite, labelled: LabelledAnswer) -> Exhibit:
    """What a judge is shown of a labelled answer: its case's conversation, and the fixtures that had come back."""
    case, answers = suite.case(labelled.case), (*labelled.earlier, labelled.answer)
    turns = tuple(Turn(query=query, answer=answer) for query, answer in zip(case.turns, answers, strict=True))
    shown = [suite.fixtures[name] for name in labelled.evidence]
    evidence = tuple(ToolCall(name=one.tool, arguments=one.arguments, result=one.result) for one in shown)
    return Exhibit(turns=turns, evidence=evidence)


def rubric_of(suite: Suite, case: Case) -> Rubric | None:
    """The rubric that a case's answers are judged by; None: no judge looks at them."""
    return next((rubric for rubric in suite.rubrics if rubric.id == case.rubric), None)


def rubrics_of(suite: Suite, cases: Collection[str]) -> tuple[Rubric, ...]:
    """The rubrics that these cases are judged by, in the suite's order."""
    wanted = {case.rubric for case in suite.cases if case.id in cases}
    return tuple(rubric for rubric in suite.rubrics if rubric.id in wanted)
