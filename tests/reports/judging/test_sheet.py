import pytest
import yaml

from evalfarm.contracts.judging import Disagreement
from evalfarm.contracts.run import ToolCall
from evalfarm.errors import SuiteError
from evalfarm.reports.judging.sheet import Decided, read_sheet, write_sheet


def disagreement(answer: str) -> Disagreement:
    return Disagreement(
        place="s-1/4",
        case="a",
        request="Is A there? yes: no",
        evidence=(ToolCall(name="lookup", arguments={"id": "A"}, result={"sold": True}),),
        answer=answer,
        labels={"answer": "PASS", "judge": "FAIL"},
        reasons=("judge: so",),
        cites="A.sold",
    )


FOUND = [disagreement("Yes.\nOn two lines: – “quoted”."), disagreement("no")]


def filled(*changes: dict[str, str]) -> str:
    """A written sheet with some fields of its first answers filled in."""
    text = write_sheet("s-1", FOUND)
    data = yaml.safe_load(text)
    for line, change in zip(data["answers"], changes, strict=False):
        line.update(change)
    return text.partition("answers:")[0] + yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def test_a_sheet_that_nobody_touched_decides_nothing() -> None:
    assert read_sheet(write_sheet("s-1", FOUND), "open.yaml", FOUND) == ()


def test_a_sheet_shows_a_reviewer_all_that_it_takes() -> None:
    text = write_sheet("s-1", FOUND)
    assert text.startswith("# Fill in `decision` and `why`")
    assert "evalfarm adjudicate s-1 --import FILE" in text
    first = yaml.safe_load(text)["answers"][0]
    assert {name: first[name] for name in ("place", "answer", "labels", "because", "rests_on", "decision", "why")} == {
        "place": "s-1/4",
        "answer": FOUND[0].answer,
        "labels": "answer PASS, judge FAIL",
        "because": ["judge: so"],
        "rests_on": "A.sold",
        "decision": None,
        "why": None,
    }
    assert first["evidence"] == ['lookup({"id": "A"}) → {"sold": true}']


def test_what_was_filled_in_comes_back() -> None:
    text = filled({"decision": "FAIL", "why": " It was sold. "}, {"decision": "DISPUTED", "why": "We differ."})
    assert read_sheet(text, "open.yaml", FOUND) == (
        Decided(subject=FOUND[0].subject, value="FAIL", why="It was sold."),
        Decided(subject=FOUND[1].subject, value="INCONCLUSIVE", why="We differ."),
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"decision": "FAIL"}, "answers[0].why: a decision needs a reason"),
        ({"decision": "MAYBE", "why": "So."}, "answers[0].decision: Input should be 'PASS', 'FAIL' or 'DISPUTED'"),
        ({"decision": "PASS", "why": "So.", "subject": "sha256:x"}, "answers[0].subject: this answer is not open here"),
        ({"verdict": "PASS"}, "answers[0].verdict: Extra inputs are not permitted"),
    ],
)
def test_what_does_not_hold_is_refused_with_its_line(change: dict[str, str], told: str) -> None:
    with pytest.raises(SuiteError) as caught:
        read_sheet(filled(change), "open.yaml", FOUND)
    assert caught.value.message.startswith("open.yaml:")
    assert told in caught.value.message


def test_another_file_is_no_sheet() -> None:
    with pytest.raises(SuiteError, match="it holds no `answers`"):
        read_sheet("suite: s\n", "open.yaml", FOUND)
