"""Whether an answer means what it must, against the evidence that was returned; the route has its own grader.

Every fact is judged by itself. What must not be said fails wherever it is said. What must be said, and what must not
be contradicted, is only held against the answer where the evidence for it was returned in this very trace: where it
was not, the route is at fault, and the answer can neither be supported nor refuted.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import JsonValue

from evalfarm.contracts.answer import REQUEST, Fact
from evalfarm.contracts.run import Trace
from evalfarm.contracts.suite import Case, Suite
from evalfarm.contracts.verdict import Label, LabelValue
from graders.evidence import gaps, refuse_strange, returned
from graders.paths import groups_at
from graders.reading.facts import AnswerFunction, Reading, Rules, read_fact

GRADER = "answer"
VERSION = "2"  #: another meaning is another version
NO_FUNCTIONS: Mapping[str, AnswerFunction] = {}
_SHOWN = 300  #: characters of a reason: it may quote an answer


class _Judged(NamedTuple):
    value: LabelValue
    reason: str


def judge_answer(
    suite: Suite, case: Case, trace: Trace, functions: Mapping[str, AnswerFunction] = NO_FUNCTIONS
) -> Label | None:
    """Judge a trace's answers against the case's facts; None: there is nothing to judge by, or no model answered.

    INCONCLUSIVE, whatever was said, where the trace is not whole, the run did not finish, or the reference is
    disputed. `functions` are those of the suite's `answer_functions`. Raises ValueError for a trace that
    infrastructure ended, and for one that is not this case's.
    """
    refuse_strange(case, trace)
    if trace.trial.arm.harness == "direct" or not case.facts:
        return None
    if open_ones := _open_questions(case, trace):
        return Label(grader=GRADER, version=VERSION, value="INCONCLUSIVE", reasons=open_ones)
    judged = [_judge(suite, fact, trace, functions) for fact in case.facts]
    reasons = tuple(_one_line(one.reason) for value in ("FAIL", "INCONCLUSIVE") for one in judged if one.value == value)
    values = {one.value for one in judged}
    label: LabelValue = "FAIL" if "FAIL" in values else "INCONCLUSIVE" if "INCONCLUSIVE" in values else "PASS"
    return Label(grader=GRADER, version=VERSION, value=label, reasons=reasons)


def _open_questions(case: Case, trace: Trace) -> tuple[str, ...]:
    if missing := gaps(trace):
        return missing
    if trace.outcome != "finished":
        return ("the run did not finish, so there is no final answer to judge",)
    if case.reference is not None and case.reference.disputed:
        return (f"the reference of {case.id} is disputed: reviewers have to settle it first",)
    return ()


def _judge(suite: Suite, fact: Fact, trace: Trace, functions: Mapping[str, AnswerFunction]) -> _Judged:
    turn = len(trace.turns) - 1 if fact.turn is None else fact.turn - 1
    if turn >= len(trace.turns):
        return _Judged("INCONCLUSIVE", f"{fact.id}: turn {fact.turn} was never reached")
    answer = trace.turns[turn].answer
    if not answer.strip():
        return _Judged("FAIL", f"{fact.id}: the answer is empty")
    evidence = returned(suite.fixtures, trace.served_calls, turn)
    asked = tuple(one.query for one in trace.turns[: turn + 1])
    reading = read_fact(fact, answer, Rules(suite.conclusions, functions, evidence, asked))
    return _held_against(fact, reading, _missing(suite, fact, evidence))


def _held_against(fact: Fact, reading: Reading, missing: str) -> _Judged:
    """The label that a reading earns under what the fact demands; `missing`: evidence that was not returned."""
    rests = f"it rests on {', '.join(fact.rests_on)}"
    said = f"{fact.id}: the answer {reading.says}"
    if reading.stand == "unclear":
        return _Judged("INCONCLUSIVE", f"{said}; {rests}")
    if fact.must == "absent":
        return (
            _Judged("FAIL", f"{said}, which it must not; {rests}") if reading.stand == "stated" else _Judged("PASS", "")
        )
    if fact.must == "not_contradicted" and reading.stand == "unsaid":
        return _Judged("PASS", "")
    if missing:
        return _Judged("INCONCLUSIVE", f"{said}, and nothing returned can bear that out: {missing}")
    return _Judged("PASS", "") if reading.stand == "stated" else _Judged("FAIL", f"{said}; {rests}")


def _missing(suite: Suite, fact: Fact, evidence: Mapping[str, JsonValue]) -> str:
    """What of a fact's evidence was not returned, or otherwise than the fixture has it; empty: all is there."""
    for citation in fact.rests_on:
        if citation == REQUEST:
            continue
        name, _, field = citation.partition(".")
        if name not in evidence:
            return f"{citation} was never returned"
        if groups_at(evidence[name], field) != groups_at(dict(suite.fixtures[name].result), field):
            return f"{citation} was not returned as the fixture has it"
    return ""


def _one_line(text: str) -> str:
    line = re.sub(r"\s+", " ", text)
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
