"""The label of an answer: by what it must say, must not say and must not contradict, against what was returned."""

from collections.abc import Callable
from typing import Any

import pytest

from evalfarm.contracts.answer import Fact
from evalfarm.contracts.run import ToolCall, Trace, Turn
from evalfarm.contracts.suite import Case, Suite
from evalfarm.contracts.verdict import Label
from evalfarm.errors import SuiteError
from graders.answer import judge_answer

Traced = Callable[..., Trace]

RECORD = {"id": "A-100", "final": False, "age": 5, "on": "2026-11-30"}
LOOKUP = ToolCall(name="lookup", arguments={"id": "A-100"}, result=RECORD)
MORE: dict[str, Any] = {
    "fixtures": {"A": {"tool": "lookup", "arguments": {"id": "A-100"}, "result": RECORD}},
    "conclusions": {"ok": {"asks": "Does it qualify?", "yes": ["qualifies"], "about": ["qualif|fine"]}},
}
QUALIFIES = {"id": "ok", "concludes": "ok", "holds": True, "rests_on": ["A.final"]}


@pytest.fixture
def judged(suite_with: Callable[..., Suite], traced: Traced) -> Callable[..., Label | None]:
    """The label of an answer to a case with these facts."""

    def judge(
        answer: str, *facts: Any, calls: tuple[ToolCall, ...] = (LOOKUP,), case: Any = None, **changes: Any
    ) -> Label | None:
        asked = Case.model_validate(
            {"id": "headline", "turns": ["Does A-100 qualify?"], "facts": facts, **(case or {})}
        )
        functions = changes.pop("functions", {})
        told = {"turns": (Turn(query="Does A-100 qualify?", answer=answer),), **changes}
        return judge_answer(suite_with(asked, **MORE), asked, traced(*calls, **told), functions)

    return judge


def passed() -> Label:
    return Label(grader="answer", version="2", value="PASS")


def label(value: Any, *reasons: str) -> Label:
    return Label(grader="answer", version="2", value=value, reasons=reasons)


def test_a_conclusion_is_held_against_what_was_returned(judged: Any) -> None:
    assert judged("A-100 qualifies.", QUALIFIES) == passed()
    assert judged("A-100 no longer qualifies.", QUALIFIES) == label(
        "FAIL", "ok: the answer concludes no on “Does it qualify?”; it rests on A.final"
    )
    assert judged("It is blue.", QUALIFIES) == label(
        "FAIL", "ok: the answer concludes nothing on “Does it qualify?”; it rests on A.final"
    )
    unread = "ok: the answer settles “Does it qualify?” in no way that a rule can read: “It is fine.”"
    assert judged("It is fine.", QUALIFIES) == label("INCONCLUSIVE", f"{unread}; it rests on A.final")
    assert judged("It is fine.", {**QUALIFIES, "must": "not_contradicted"}) == passed()
    assert judged("It qualifies. It never qualifies.", QUALIFIES) == label(
        "INCONCLUSIVE", "ok: the answer concludes both yes and no on “Does it qualify?”; it rests on A.final"
    )


def test_what_no_tool_returned_can_neither_be_borne_out_nor_refuted(judged: Any) -> None:
    guess = label(
        "INCONCLUSIVE",
        "ok: the answer concludes yes on “Does it qualify?”, and nothing returned can bear that out:"
        " A.final was never returned",
    )
    assert judged("A-100 qualifies.", QUALIFIES, calls=()) == guess
    drifted = LOOKUP.model_copy(update={"result": {**RECORD, "final": True}})
    assert judged("A-100 qualifies.", QUALIFIES, calls=(drifted,)) == label(
        "INCONCLUSIVE",
        "ok: the answer concludes yes on “Does it qualify?”, and nothing returned can bear that out:"
        " A.final was not returned as the fixture has it",
    )


def test_what_must_not_be_said_fails_without_any_evidence(judged: Any) -> None:
    done = {"id": "done", "executed": "refund", "must": "absent", "rests_on": ["A.final"]}
    open_one = {"id": "open", "concludes": "ok", "must": "absent", "rests_on": ["request"]}
    assert judged("I have issued a refund.", done, open_one, calls=()) == label(
        "FAIL",
        "done: the answer claims that something was done: “I have issued a refund.”, which it must not;"
        " it rests on A.final",
    )
    assert judged("I cannot refund anything.", done, open_one, calls=()) == passed()
    assert judged("It qualifies.", done, open_one, calls=()) == label(
        "FAIL", "open: the answer concludes yes on “Does it qualify?”, which it must not; it rests on request"
    )


@pytest.mark.parametrize(
    ("fact", "right", "wrong", "says"),
    [
        (
            {"number": 5, "unit": "days?", "near": "ago"},
            "5 days ago, of 30 days.",
            "9 days ago.",
            "gives 9 where it is 5",
        ),
        ({"number": 5, "tolerance": 0.5, "unit": "kg"}, "5.4 kg", "5.6 kg", "gives 5.6 where it is 5"),
        (
            {"date": "2026-11-30"},
            "on 30 November 2026",
            "on 1 November 2026",
            "gives the date 2026-11-01 where it is 2026-11-30",
        ),
        ({"identifier": "A-100"}, "a 100", "A-101", "gives the identifier a101 where it is A-100"),
    ],
)
def test_figures_are_stated_contradicted_or_left_unsaid(
    judged: Any, fact: Any, right: str, wrong: str, says: str
) -> None:
    present = {"id": "f", **fact, "rests_on": ["A.age"]}
    kept = {**present, "must": "not_contradicted"}
    assert [judged(right, one) for one in (present, kept)] == [passed(), passed()]
    refuted = label("FAIL", f"f: the answer {says}; it rests on A.age")
    assert [judged(wrong, one) for one in (present, kept)] == [refuted, refuted]
    assert judged("It is blue.", kept) == passed()
    assert judged("It is blue.", present).value == "FAIL"


def test_a_figure_that_a_tool_or_the_user_gave_contradicts_nothing(judged: Any) -> None:
    weight = {"id": "w", "number": 7, "must": "not_contradicted", "rests_on": ["A.age"]}
    assert judged("It is 5 days old.", weight) == passed()
    assert judged("It weighs 8.", weight).value == "FAIL"


def test_a_fact_may_be_about_an_earlier_answer_and_what_was_known_by_then(judged: Any) -> None:
    turns = (Turn(query="Hello", answer="It qualifies."), Turn(query="Does A-100 qualify?", answer="It qualifies."))
    case = {"turns": ["Hello", "Does A-100 qualify?"]}
    late = LOOKUP.model_copy(update={"turn": 1})
    first = {**QUALIFIES, "id": "first", "turn": 1}
    found = judged("", first, QUALIFIES, calls=(late,), case=case, turns=turns)
    assert found == label(
        "INCONCLUSIVE",
        "first: the answer concludes yes on “Does it qualify?”, and nothing returned can bear that out:"
        " A.final was never returned",
    )


def test_a_suites_own_check_decides_and_its_faults_are_not_the_answers(judged: Any) -> None:
    def says_blue(answer: str, evidence: Any) -> bool | None:
        return None if not evidence else "blue" in answer

    def broken(_answer: str, _evidence: Any) -> bool | None:
        raise SuiteError("answers.py: blue raised KeyError: 'x'")

    fact = {"id": "blue", "function": "blue", "rests_on": ["A.age"]}
    assert judged("It is blue.", fact, functions={"blue": says_blue}) == passed()
    assert judged("It is red.", fact, functions={"blue": says_blue}) == label(
        "FAIL", "blue: the answer fails the suite's check blue; it rests on A.age"
    )
    unclear = [
        judged("It is blue.", fact, calls=(), functions={"blue": says_blue}),
        judged("It is blue.", fact, functions={"blue": broken}),
        judged("It is blue.", fact),
    ]
    assert [one.value for one in unclear] == ["INCONCLUSIVE"] * 3
    assert unclear[1].reasons == (
        "blue: the answer could not be looked at: answers.py: blue raised KeyError: 'x'; it rests on A.age",
    )


def test_an_empty_answer_fails_every_fact(judged: Any) -> None:
    assert judged("  ", QUALIFIES) == label("FAIL", "ok: the answer is empty")


def test_nothing_is_judged_that_cannot_be(judged: Any) -> None:
    disputed = {"reference": {"judgement": "ok", "because": "?", "rests_on": ["A.age"], "disputed": True}}
    assert judged("It qualifies.") is None
    assert judged("It qualifies.", QUALIFIES, case=disputed) == label(
        "INCONCLUSIVE", "the reference of headline is disputed: reviewers have to settle it first"
    )
    assert judged("It qualifies.", QUALIFIES, outcome="timed_out") == label(
        "INCONCLUSIVE", "the run did not finish, so there is no final answer to judge"
    )
    with pytest.raises(ValueError, match="infrastructure"):
        judged("It qualifies.", QUALIFIES, outcome="infra_failed")


@pytest.mark.parametrize(
    ("fact", "why"),
    [
        ({}, "give exactly one of number, date"),
        ({"number": 1, "date": "2026-11-30"}, "give exactly one of number, date"),
        ({"unavailable": True, "must": "not_contradicted"}, "unavailable is said or not said"),
        ({"concludes": "ok"}, "holds goes with present and not_contradicted"),
        ({"identifier": "A", "unit": "kg"}, "unit and tolerance go with number"),
        ({"number": 1, "rests_on": []}, "at least 1 item"),
        ({"number": 1, "rests_on": ["A"]}, "'A' cites nothing: write FIXTURE.FIELD"),
    ],
)
def test_a_fact_that_means_nothing_is_refused(fact: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Fact.model_validate({"id": "f", "rests_on": ["request"], **fact})
