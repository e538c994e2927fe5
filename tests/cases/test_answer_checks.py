"""Suites whose facts, references and verdicts rest on nothing are refused, with file, line and what to do."""

from pathlib import Path
from typing import Any

import pytest

from cases.loader import load_suite
from evalfarm.errors import SuiteError

SUITE = """\
suite: small
version: "1"
plugin: {name: Small}
server: {command: [serve]}
fixtures: {A: {tool: look_up, arguments: {id: A}, result: {final: true, more: {deep: 1}}}}
categories: {plain: an ordinary case}
conclusions: {ok: {asks: Is it?, "yes": [it is]}}
judgements: {fine: {meaning: It is fine}}
rubrics: [{id: tone, version: "1", criteria: [{id: kind, text: It is kind}]}]
answer_functions: answers.py
cases:
  - id: first
    query: What is it?
    category: plain
    rubric: tone
    facts:
      - {id: ok, concludes: ok, holds: true, rests_on: [A.final, A.more.deep]}
      - {id: own, function: own, rests_on: [request]}
    reference: {judgement: fine, because: It is, rests_on: [A.final]}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Any:
    """Loads the suite with one text in the place of another; its error without the folder's name."""
    (tmp_path / "answers.py").write_text("def own(answer, evidence):\n    return True\n")

    def load(old: str = "", new: str = "") -> Any:
        assert old in SUITE
        path = tmp_path / "suite.yaml"
        path.write_text(SUITE.replace(old, new, 1) if old else SUITE)
        try:
            return load_suite(str(path))
        except SuiteError as error:
            return str(error).replace(f"{tmp_path}/", "").replace(f" in {tmp_path}", "")

    return load


def test_a_suite_whose_facts_rest_on_something_loads(suite: Any) -> None:
    loaded = suite()
    assert loaded.suite.cases[0].facts[0].kind == "concludes"
    assert [*loaded.files] == ["answers.py"]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (
            "rests_on: [A.final, A.more.deep]",
            "rests_on: [A.finale]",
            "suite.yaml:17: cases[0].facts[0].rests_on[0]: 'A.finale' cites the field 'finale', which the fixture A"
            " does not have\n\nhint: did you mean 'final'? its fields: final, more",
        ),
        (
            "rests_on: [A.final, A.more.deep]",
            "rests_on: [A.final, B.final]",
            "suite.yaml:17: cases[0].facts[0].rests_on[1]: 'B.final' cites the fixture 'B', which the suite does not"
            " have\n\nhint: its fixtures: A",
        ),
        (
            "rests_on: [A.final]}\n",
            "rests_on: [A.final.deep]}\n",
            "suite.yaml:19: cases[0].reference.rests_on[0]: 'A.final.deep' cites the field 'deep', which the fixture A"
            " does not have\n\nhint: its fields: none",
        ),
        (
            "concludes: ok",
            "concludes: okay",
            "suite.yaml:17: cases[0].facts[0].concludes: the suite has no conclusion 'okay'"
            "\n\nhint: did you mean 'ok'? the suite's conclusions: ok",
        ),
        (
            "judgement: fine",
            "judgement: good",
            "suite.yaml:19: cases[0].reference.judgement: the suite has no judgement 'good'"
            "\n\nhint: the suite's judgements: fine",
        ),
        (
            "category: plain",
            "category: plane",
            "suite.yaml:14: cases[0].category: the suite has no category 'plane'"
            "\n\nhint: did you mean 'plain'? the suite's categories: plain",
        ),
        (
            "rubric: tone",
            "rubric: style",
            "suite.yaml:15: cases[0].rubric: the suite has no rubric 'style'\n\nhint: the suite's rubrics: tone",
        ),
        (
            "criteria: [{id: kind, text: It is kind}]",
            "criteria: []",
            "suite.yaml:9: rubrics[0].criteria: holds nothing: at least one entry is needed",
        ),
        (
            "function: own",
            "function: owned",
            "suite.yaml:18: cases[0].facts[1].function: answers.py defines no function 'owned'"
            "\n\nhint: did you mean 'own'? it defines: own",
        ),
        (
            "answer_functions: answers.py\n",
            "",
            "suite.yaml:17: cases[0].facts[1].function: the suite names no file of functions"
            "\n\nhint: add answer_functions: FILE.py to the suite",
        ),
        (
            "query: What is it?",
            "direct: {tool: look_up}",
            "suite.yaml:16: cases[0].facts: facts are about answers, and this case has no query to answer",
        ),
        (
            "cases:\n",
            "verdict: [{tool_route: FAIL, verdict: failed}]\ncases:\n",
            "suite.yaml:11: verdict: the verdict table has a hole: no row covers"
            " {tool_route: PASS, answer: PASS, judge: PASS}; add a row for it",
        ),
        (
            "id: own,",
            "id: ok,",
            "suite.yaml:12: cases[0]: two facts are called 'ok'",
        ),
        (
            "facts:\n",
            "facts:\n      - {id: late, turn: 2, unavailable: true, rests_on: [request]}\n",
            "suite.yaml:12: cases[0]: fact 'late' is about turn 2, and the case has 1",
        ),
        (
            "fixtures: {A:",
            "fixtures_from: fixtures.json\nfixtures: {A:",
            "suite.yaml:5: fixtures_from: give fixtures or fixtures_from, not both",
        ),
        (
            "suite: small",
            'redact: {card: "("}\nsuite: small',
            "suite.yaml:1: redact.card: not a regular expression: missing ), unterminated subpattern at position 0",
        ),
    ],
)
def test_what_rests_on_nothing_is_named_with_its_line(suite: Any, old: str, new: str, text: str) -> None:
    assert suite(old, new) == text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            None,
            "suite.yaml:5: fixtures_from: there is no file 'fixtures.json'"
            "\n\nhint: give a path inside the suite's folder",
        ),
        ("{", "fixtures.json:1: this is not JSON: Expecting property name enclosed in double quotes"),
        (
            '{"A": {"tool": "look_up"}}',
            "fixtures.json: A.arguments: field required\n\nhint: write"
            ' {"NAME": {"tool": …, "arguments": {…}, "result": {…}}, …}',
        ),
    ],
)
def test_fixtures_beside_the_suite_are_read_or_refused(
    suite: Any, tmp_path: Path, content: str | None, text: str
) -> None:
    if content is not None:
        (tmp_path / "fixtures.json").write_text(content)
    line = SUITE.splitlines()[4]
    assert suite(line, "fixtures_from: fixtures.json") == text


def test_fixtures_from_a_file_are_the_suites_own_and_the_servers_to_read(suite: Any, tmp_path: Path) -> None:
    made = '{"A": {"tool": "look_up", "arguments": {"id": "A"}, "result": {"final": true, "more": {"deep": 1}}}}'
    (tmp_path / "fixtures.json").write_text(made)
    loaded = suite(SUITE.splitlines()[4], "fixtures_from: fixtures.json")
    assert loaded.suite.fixtures == suite().suite.fixtures
    assert [*loaded.files] == ["answers.py", "fixtures.json"]
