import pytest

from evalfarm.analysis.judgement.disagreements import disagreements, references, still_open
from evalfarm.contracts.answer import Fixture, Reference
from evalfarm.contracts.answer import Judgement as Meaning
from evalfarm.contracts.judging import Adjudication, Disagreement, LabelledAnswer
from evalfarm.contracts.run import Arm, Plan, Telemetry, ToolCall, Trace, Turn
from evalfarm.contracts.suite import Case, Plugin, Server, Suite
from evalfarm.contracts.verdict import Label, LabelValue, Result

CALL = ToolCall(name="lookup", arguments={"id": "A"}, result={"sold": True})


@pytest.fixture
def plan() -> Plan:
    reference = Reference(judgement="no", because="It was sold.", rests_on=("A.sold",))
    suite = Suite(
        suite="s",
        version="1",
        plugin=Plugin(name="P"),
        server=Server(python="s.py"),
        fixtures={"A": Fixture(tool="lookup", arguments={"id": "A"}, result={"sold": True})},
        judgements={"no": Meaning(meaning="No.")},
        cases=(Case(id="a", turns=("Is A there?",), reference=reference),),
    )
    arm = Arm(model="m", harness="loop", variant="plain")
    return Plan(run="s-1", suite=suite, arms=(arm,), cases=("a",), repeats=9)


def answered(plan: Plan, index: int, text: str, **values: LabelValue) -> tuple[Result, Trace]:
    labels = tuple(
        Label(grader=name, version="1", value=value, reasons=("so",) if value == "FAIL" else ())
        for name, value in values.items()
    )
    trace = Trace(
        run=plan.run,
        trial=plan.trial(index),
        attempt=1,
        outcome="finished",
        turns=(Turn(query="Is A there?", answer=text),),
        served_calls=(CALL,),
        telemetry=Telemetry(complete=True),
        started_at=0.0,
        duration_s=1.0,
    )
    return Result(trial=plan.trial(index), attempt=1, outcome="finished", verdict="failed", labels=labels), trace


def decided(text: str, value: LabelValue, at: float = 1.0) -> Adjudication:
    return Adjudication(
        suite="s", suite_version="1", case="a", answer=text, labels={}, value=value, why="So.", by="me", at=at
    )


def test_rules_against_judge_are_listed_with_everything_that_it_takes_to_decide(plan: Plan) -> None:
    found = disagreements(plan, [answered(plan, 4, "Yes.", answer="PASS", judge="FAIL")], {})
    assert found == (
        Disagreement(
            place="s-1/4",
            case="a",
            request="Is A there?",
            evidence=(CALL,),
            answer="Yes.",
            labels={"answer": "PASS", "judge": "FAIL"},
            reasons=("judge: so",),
            cites="A.sold",
        ),
    )


def test_agreement_an_open_label_and_the_route_are_no_disagreement(plan: Plan) -> None:
    rows = [
        answered(plan, 0, "One.", answer="PASS", judge="PASS"),
        answered(plan, 1, "Two.", answer="PASS", judge="INCONCLUSIVE"),
        answered(plan, 2, "Three.", tool_route="FAIL", answer="PASS"),
    ]
    assert disagreements(plan, rows, {}) == ()


def test_a_person_s_label_of_the_same_words_stands_beside_the_automatic_ones(plan: Plan) -> None:
    labelled = LabelledAnswer(
        id="l",
        case="a",
        purpose="calibration",
        kind="short",
        answer="No, it\nwas sold.",
        label="PASS",
        cites="A.sold",
        because="So.",
    )
    (one,) = disagreements(plan, [answered(plan, 0, "No,  it was sold.", answer="FAIL")], references([labelled], []))
    assert one.labels == {"answer": "FAIL", "people": "PASS"}


def test_a_decision_outweighs_a_file_and_a_later_one_an_earlier(plan: Plan) -> None:
    known = references([], [decided("Yes.", "FAIL"), decided("Yes.", "PASS", at=2.0)])
    assert list(known.values()) == ["PASS"]


def test_equal_answers_are_settled_once(plan: Plan) -> None:
    rows = [answered(plan, index, "Yes.", answer="PASS", judge="FAIL") for index in (3, 1, 2)]
    assert [one.place for one in disagreements(plan, rows, {})] == ["s-1/3"]


def test_what_was_decided_is_no_longer_open_even_where_a_label_still_differs(plan: Plan) -> None:
    found = disagreements(plan, [answered(plan, 0, "Yes.", answer="PASS", judge="FAIL")], {})
    assert still_open(found, [decided("Yes.", "INCONCLUSIVE")]) == ()
    assert still_open(found, [decided("No.", "PASS")]) == found
