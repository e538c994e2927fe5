import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalfarm.analysis.summary.aggregate import summarize_rows
from evalfarm.analysis.summary.foreign import read_rows, tags_of
from evalfarm.analysis.summary.rows import SCHEMA, Rows
from evalfarm.contracts.verdict import VERDICTS, RunSummary
from evalfarm.errors import UsageError

Write = Callable[[str, str], Path]
GOOD: dict[str, Any] = {"case": "a", "repeat": 0, "label": "PASS"}
REFERENCE = "docs/reference/rows.md describes every column"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return written


def told(rows: Rows) -> list[dict[str, Any]]:
    return [dict(zip(SCHEMA, row, strict=True)) for row in rows.records('FROM rows ORDER BY "index"')]


def lines(*rows: dict[str, Any]) -> str:
    return "\n".join(json.dumps(row) for row in rows)


def summed_up(path: Path) -> RunSummary:
    with read_rows(path) as rows:
        return summarize_rows(rows, path.stem)


FULL: dict[str, Any] = {
    "case": "a",
    "family": "f",
    "repeat": 3,
    "model": "m",
    "harness": "promptfoo",
    "variant": "v",
    "attempt": 2,
    "latency_s": 1.5,
    "timed_out": True,
    "waited_s": 0.5,
    "tool_calls": 2.0,
    "reasoning_tokens": 9.0,
    "cost_usd": 0.25,
    "all_attempts_usd": 0.75,
}
READ: dict[str, Any] = FULL | {
    "index": 0,
    "verdict": "failed",
    "request_latency_s": [],
    "tags": {"kind": "k", "n": "1"},
    "reasons": ["why"],
}


def test_every_column_is_read_from_json_lines(write: Write) -> None:
    row = FULL | {"label": "Fail", "tags": {"n": 1, "kind": "k"}, "reason": "why", "request_latency_s": [0.5]}
    with read_rows(write("rows.jsonl", f"\n{lines(row)}\n")) as rows:
        assert told(rows) == [READ | {"index": 1, "request_latency_s": [0.5]}]


def test_every_column_is_read_from_csv(write: Write) -> None:
    row = FULL | {"pass": False, "tags": "kind=k; n=1", "reason": "why"}
    text = ",".join(row) + "\n" + ",".join(str(value) for value in row.values()) + "\n"
    with read_rows(write("rows.csv", "\ufeff" + text)) as rows:
        assert told(rows) == [READ | {"index": 1}]


def test_every_column_is_read_from_parquet(write: Write, tmp_path: Path) -> None:
    row = FULL | {"verdict": "failed", "tags": {"n": 1, "kind": "k"}, "reasons": ["why"]}
    given_as_json = write("given.jsonl", lines(row))
    with Rows() as rows:
        rows.run(
            "COPY (FROM read_json_auto(?)) TO ? (FORMAT parquet)", [str(given_as_json), str(tmp_path / "rows.parquet")]
        )
    with read_rows(tmp_path / "rows.parquet") as rows:
        assert told(rows) == [READ]


def test_what_is_not_given_is_not_known(write: Write) -> None:
    with read_rows(write("rows.csv", "case,repeat,pass\na,0,1\n")) as rows:
        (row,) = told(rows)
    unknown = ("family", "latency_s", "waited_s", "tool_calls", "reasoning_tokens", "cost_usd", "all_attempts_usd")
    assert row == {
        "index": 1,
        "case": "a",
        "repeat": 0,
        "model": "-",
        "harness": "-",
        "variant": "-",
        "verdict": "passed",
        "attempt": 1,
        "timed_out": False,
        "request_latency_s": [],
        "tags": {},
        "reasons": [],
    } | dict.fromkeys(unknown)


@pytest.mark.parametrize(
    ("label", "verdict"),
    [
        ("PASS", "passed"),
        ("fail", "failed"),
        ("Inconclusive", "inconclusive"),
        ("infra failed", "infra_failed"),
        ("NOT_RUN", "not_run"),
        *((verdict, verdict) for verdict in VERDICTS),
    ],
)
def test_a_label_may_be_a_graders_or_a_verdict(write: Write, label: str, verdict: str) -> None:
    with read_rows(write("rows.jsonl", lines(GOOD | {"label": label}))) as rows:
        assert [row["verdict"] for row in told(rows)] == [verdict]


def test_a_column_that_is_not_read_is_told(write: Write) -> None:
    with read_rows(write("rows.jsonl", lines(GOOD | {"zeta": 1, "alpha": None}))) as rows:
        assert rows.notes == ("Columns that are not read: alpha, zeta.",)


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("label", "maybe", "label is maybe; it must be PASS, FAIL, INCONCLUSIVE, INFRA_FAILED or NOT_RUN"),
        ("label", None, "label and pass are both empty"),
        ("pass", False, "label is PASS but pass is false"),
        ("pass", "perhaps", "pass is perhaps; it must be true or false"),
        ("latency_s", float("nan"), "latency_s is NaN; leave out what is not known"),
        ("latency_s", float("inf"), "latency_s is infinite; leave out what is not known"),
        ("latency_s", -0.5, "latency_s is -0.5, which is less than 0"),
        ("latency_s", "fast", "latency_s is fast, which is no number"),
        ("latency_s", [1], "latency_s is a list or an object, and must be one value"),
        ("cost_usd", -1, "cost_usd is -1, which is less than 0"),
        ("tool_calls", True, "tool_calls is true, which is no number"),
        ("repeat", 1.5, "repeat is 1.5, which is no whole number"),
        ("repeat", -1, "repeat is -1, which is less than 0"),
        ("repeat", None, "repeat is empty"),
        ("case", " ", "case is empty"),
        ("case", {"id": "a"}, "case is a list or an object, and must be one value"),
        ("attempt", 0, "attempt is 0, which is less than 1"),
        ("timed_out", "late", "timed_out is late; it must be true or false"),
        ("request_latency_s", [1, -1], "request_latency_s must be a list of numbers that are not negative"),
        ("reasons", "why", "reasons must be a list of texts"),
        ("tags", "headline", "tags: 'headline' is neither a JSON object nor name=value;name=value"),
        ("tags", {"k": [1]}, "tags: every value must be a text, a number, true or false"),
    ],
)
def test_a_bad_row_is_refused_by_its_line_its_content_and_its_column(
    write: Write, column: str, value: Any, problem: str
) -> None:
    bad = GOOD | {"case": "b"} | {column: value}
    path = write("rows.jsonl", f"{lines(GOOD)}\n\n{lines(bad)}\n")
    with pytest.raises(UsageError) as refused:
        read_rows(path)
    assert refused.value.message == f"rows.jsonl, line 3: {problem}\n  {json.dumps(bad)}"
    assert refused.value.hint == REFERENCE


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (GOOD | {"label": "FAIL"}, "repeat 0 of case a is given twice in the arm - · - · -; the first is line 1"),
        (GOOD | {"repeat": 1, "family": "f"}, "family or tags of case a are not those of line 1"),
        (GOOD | {"repeat": 1, "tags": {"k": "v"}}, "family or tags of case a are not those of line 1"),
    ],
)
def test_a_row_that_contradicts_another_is_refused(write: Write, second: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_rows(write("rows.jsonl", lines(GOOD, second)))
    assert refused.value.message == f"rows.jsonl, line 2: {problem}\n  {json.dumps(second)}"


def test_the_row_of_a_parquet_file_is_named_by_its_number(write: Write, tmp_path: Path) -> None:
    given_as_json = write("given.jsonl", lines(GOOD, GOOD | {"case": "b", "label": "?"}))
    with Rows() as rows:
        rows.run(
            "COPY (FROM read_json_auto(?)) TO ? (FORMAT parquet)", [str(given_as_json), str(tmp_path / "r.parquet")]
        )
    with pytest.raises(UsageError, match=r"^r\.parquet, row 2: label is \?"):
        read_rows(tmp_path / "r.parquet")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rows.jsonl", "", "rows.jsonl holds no row"),
        ("rows.csv", "case,repeat,label\n", "rows.csv holds no row"),
        ("rows.jsonl", '{"case": "a"\n', 'rows.jsonl, line 1: this is no JSON object\n  {"case": "a"'),
        ("rows.jsonl", "[1]\n", "rows.jsonl, line 1: this is no JSON object\n  [1]"),
        ("rows.jsonl", "\x1b[2J", "rows.jsonl, line 1: this is no JSON object\n  \ufffd[2J"),
        ("rows.jsonl", '{"case":"a","case":"b","repeat":0,"label":"PASS"}', None),
        ("rows.jsonl", '{"case": "a", "label": "PASS"}', "rows.jsonl has no column repeat"),
        ("rows.jsonl", '{"case": "a", "repeat": 0}', "rows.jsonl has no column label or pass or verdict"),
        ("rows.csv", "case,case\na,b\n", "rows.csv names a column twice in its first line"),
        (
            "rows.csv",
            "case,repeat,pass\n\na,0\n",
            "rows.csv, line 3: 2 cells, but the first line names 3 columns\n  a,0",
        ),
        ("rows.txt", "a", "rows.txt is in no format that rows are read from"),
        ("rows.parquet", "a", None),
    ],
)
def test_a_file_that_holds_no_rows_is_refused(write: Write, name: str, text: str, message: str | None) -> None:
    with pytest.raises(UsageError) as refused:
        read_rows(write(name, text))
    assert message is None or refused.value.message == message


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no file '.*rows\.csv'"):
        read_rows(tmp_path / "rows.csv")
    for name in ("rows.csv", "rows.jsonl"):
        (tmp_path / name).write_bytes(b"case,repeat\n\xff\xfe")
        with pytest.raises(UsageError, match=f"{name} is not text in UTF-8"):
            read_rows(tmp_path / name)


def test_one_case_or_one_repeat_is_summarized_without_a_wrong_number(write: Write) -> None:
    single = summed_up(write("rows.jsonl", lines(GOOD))).cells[0]
    assert (single.pass_rate.value, single.disagreement.value, single.repeat_spread.more_than_noise) == (
        1.0,
        None,
        None,
    )
    undecided = summed_up(write("rows.jsonl", lines(GOOD | {"label": "INCONCLUSIVE"}))).cells[0]
    assert (undecided.pass_rate.value, undecided.pass_rate_bounds.worst, undecided.pass_rate_bounds.best) == (
        None,
        0,
        1,
    )


def test_arms_need_not_have_the_same_cases_or_repeats(write: Write) -> None:
    rows = [
        {"case": case, "repeat": repeat, "model": model, "label": "PASS"}
        for model, cases, repeats in (("x", "ab", (7, 1_000_000)), ("y", "c", (3,)))
        for case in cases
        for repeat in repeats
    ]
    summary = summed_up(write("rows.jsonl", lines(*rows)))
    assert [(cell.model, cell.planned, cell.flip_rate.repeats) for cell in summary.cells] == [("x", 4, 2), ("y", 1, 1)]
    assert [(case.model, case.case, case.trials) for case in summary.cases] == [
        ("x", "a", (0, 1)),
        ("x", "b", (2, 3)),
        ("y", "c", (4,)),
    ]


@pytest.mark.parametrize(
    ("text", "tags"),
    [("", {}), ("b=2;a=x=y", {"a": "x=y", "b": "2"}), ('{"b": true, "a": 1.5}', {"a": "1.5", "b": "true"})],
)
def test_tags_are_an_object_or_pairs(text: str, tags: dict[str, str]) -> None:
    assert list(tags_of(text).items()) == list(tags.items())


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    verdicts=st.lists(st.sampled_from(VERDICTS), min_size=1, max_size=30),
    cases=st.integers(1, 5),
)
def test_every_row_is_counted_once(write: Write, verdicts: list[str], cases: int) -> None:
    rows = [{"case": f"c{at % cases}", "repeat": at // cases, "label": verdict} for at, verdict in enumerate(verdicts)]
    summary = summed_up(write("rows.jsonl", lines(*rows)))
    assert {verdict: getattr(summary, verdict) for verdict in VERDICTS} == {
        verdict: verdicts.count(verdict) for verdict in VERDICTS
    }
    assert summary.planned == len(verdicts)
