"""The API: datasets in every format, filters, tags, bundles, and its own description of all that."""

import csv
import datetime
import io
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalfarm.analysis.conversations.sources import export, run_source
from evalfarm.analysis.summary.rows import Rows
from evalfarm.cli.conversations.scoring import read_subject
from evalfarm.contracts.bundle import Bundle
from evalfarm.contracts.conversation import Conversation
from evalfarm.contracts.run import ToolCall, Turn
from evalfarm.web import bundles
from evalfarm.web.access import Allowed
from evalfarm.web.asking import Ask
from evalfarm.web.datasets import ABOUT, DATASETS
from evalfarm.web.exporting import FORMATS, MEDIA_TYPES
from evalfarm.web.rows import open_rows

HOSTILE = '=cmd()\x1b]0;x\x07<script>alert(1)</script>\u202e| a | b |\r\n# x "q", \x00'
WHICH = ("source", "label", "version", "prompts")


@pytest.fixture(scope="module")
def api(shop: Any) -> Any:
    return shop.serve(shop.token())


def rows_of(client: Any, dataset: str, query: str = "") -> list[dict[str, Any]]:
    answer = client.get(f"/api/v1/datasets/{dataset}?format=json{query}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def test_the_rows_of_conversations_are_those_of_the_metrics(shop: Any, api: Any) -> None:
    exported = rows_of(api, "conversations", "&run=shop-1")
    plain = [{name: value for name, value in row.items() if name not in WHICH} for row in exported]
    assert tuple(map(Conversation.model_validate, plain)) == read_subject(shop.store, "shop-1").rows
    assert {tuple(row[name] for name in WHICH[:2]) for row in exported} == {("shop-1", None)}


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_dataset_says_the_same_in_every_format(api: Any, dataset: str, tmp_path: Path) -> None:
    answers = {form: api.get(f"/api/v1/datasets/{dataset}?format={form}") for form in FORMATS}
    assert {form: answer.headers["content-type"] for form, answer in answers.items()} == MEDIA_TYPES
    found = answers["json"].json()
    assert found
    assert [json.loads(line) for line in answers["jsonl"].text.splitlines()] == found
    parquet = tmp_path / "x.parquet"
    parquet.write_bytes(answers["parquet"].content)
    with Rows() as rows:
        documents = rows.records("SELECT to_json(t) FROM read_parquet(?) AS t", [str(parquet)])
    assert [json.loads(document) for (document,) in documents] == found
    table = list(csv.DictReader(io.StringIO(answers["csv"].text)))
    assert [list(row) for row in table] == [list(row) for row in found]
    assert [row["plugin"] for row in table] == [row["plugin"] for row in found]
    assert len(answers["markdown"].text.splitlines()) == 2 + len(found)
    told = api.get(f"/api/v1/datasets/{dataset}/preview").json()
    assert (told["dataset"], told["rows"], told.get("left_out", [])) == (dataset, len(found), [])


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["bank-1", "shop-1"]),
        ("&suite=shop", ["shop-1"]),
        ("&suite=shop&suite=bank", ["bank-1", "shop-1"]),
        ("&suite=", ["bank-1", "shop-1"]),
        ("&run=bank-1", ["bank-1"]),
        ("&label=secret", ["bank-1"]),
        ("&plugin=Shop", ["shop-1"]),
        ("&days=1", ["bank-1", "shop-1"]),
        ("&suite=shop&label=secret", []),
        ("&source=imports", []),
        ("&run=' OR true --", []),
    ],
)
@pytest.mark.parametrize("dataset", ["runs", "cells", "cases", "conversations"])
def test_filters_leave_what_fits_them_all(api: Any, dataset: str, query: str, names: list[str]) -> None:
    assert sorted({row["run"] for row in rows_of(api, dataset, query)}) == names


@pytest.mark.parametrize("dataset", ["versions", "cells", "cases", "conversations", "skills", "tools"])
def test_a_version_is_called_alike_in_every_dataset(api: Any, dataset: str) -> None:
    known = sorted({row["version"] for row in rows_of(api, "versions")})
    assert sorted({row["version"] for row in rows_of(api, dataset)}) == known
    assert len(known) == 4
    assert {row["version"] for row in rows_of(api, dataset, f"&version={known[0]}")} == {known[0]}
    assert sorted(version for row in rows_of(api, "runs") for version in row["versions"]) == known


def test_a_version_may_be_named_by_number_and_by_digest(api: Any) -> None:
    (digest, *_) = {row["plugin_digest"] for row in rows_of(api, "versions")}
    assert {row["plugin_digest"] for row in rows_of(api, "conversations", f"&version={digest}")} == {digest}
    assert len(rows_of(api, "conversations", "&version=1.0.0")) == len(rows_of(api, "conversations"))


def test_days_count_from_today(farm: Any) -> None:
    for run, days in (("new", 0), ("old", 3)):
        farm.add_run(run, started_at=farm.clock() - days * 86_400)
    client = farm.serve(farm.token())
    assert [len({row["run"] for row in rows_of(client, "conversations", f"&days={days}")}) for days in (3, 4)] == [1, 2]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("x=1", "there is no parameter 'x'"),
        ("days=0", "days cannot be so"),
        ("days=x", "days is no whole number"),
        ("days=1&days=2", "days is given twice"),
        ("source=elsewhere", "source cannot be so"),
        ("format=exe", "there is no format 'exe'"),
        ("format=csv&format=json", "format is given twice"),
        ("suite=" + "x" * 201, "a filter is too long"),
        ("&".join(f"run={number}" for number in range(101)), "a filter is too long"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_shape(api: Any, query: str, told: str) -> None:
    answer = api.get(f"/api/v1/datasets/runs?{query}")
    error = answer.json()["error"]
    assert (answer.status_code, sorted(error), error["code"]) == (400, ["code", "hint", "message"], "bad_query")
    assert error["message"].startswith(told)


def test_an_answer_that_the_asker_has_is_not_sent_again(farm: Any) -> None:
    farm.add_run("shop-1")
    client = farm.serve(farm.token())
    paths = ("datasets/versions?format=csv", "datasets/versions/preview", "bundles", "bundles/preview")
    tags = {path: client.get(f"/api/v1/{path}").headers["etag"] for path in (*paths, "bundles/shop-1/0/1")}
    assert len(set(tags.values())) == 5
    for path, tag in tags.items():
        again = client.get(f"/api/v1/{path}", headers={"If-None-Match": f'"x", {tag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    other = client.get("/api/v1/datasets/versions?format=json", headers={"If-None-Match": tags[paths[0]]})
    assert other.status_code == 200
    farm.add_run("shop-2")
    farm.holdings.look()
    changed = client.get(f"/api/v1/{paths[0]}", headers={"If-None-Match": tags[paths[0]]})
    assert (changed.status_code, changed.headers["etag"] != tags[paths[0]]) == (200, True)


def test_bundles_are_what_the_import_reads(shop: Any, api: Any) -> None:
    answer = api.get("/api/v1/bundles?run=shop-1")
    given = {json.loads(line)["facts"]["conversation"]: line for line in answer.text.splitlines()}
    assert sorted(given.values()) == sorted(export(run_source(shop.store, "shop-1")))
    assert [answer.headers[f"evalfarm-{name}"] for name in ("matched", "given", "cap")] == ["6", "6", "500"]
    for name, line in given.items():
        assert api.get(f"/api/v1/bundles/{name}").text == line
    text = api.get("/api/v1/bundles/shop-1/0/1?format=markdown")
    assert (text.headers["content-type"], text.text.startswith("## User")) == ("text/markdown; charset=utf-8", True)


def test_a_window_takes_what_began_in_it_and_says_how_much_it_left(farm: Any, tmp_path: Path) -> None:
    farm.add_run("shop-1", started_at=0.0)
    client = farm.serve(farm.token())
    told = [
        client.get(f"/api/v1/bundles/preview?{window}").json()["conversations"]
        for window in ("from=1970-01-01T00:00:02Z", "to=1970-01-01T00:00:02", "from=1970-01-02", "from=&to=")
    ]
    assert told == [4, 2, 0, 6]
    assert client.get("/api/v1/bundles?from=yesterday").json()["error"]["message"] == "from is no moment"
    opened = open_rows(farm.holdings.seen, Ask(), Allowed(), today=datetime.date(2026, 11, 30), folder=tmp_path)
    with opened as rows:
        given, matched = bundles.places(rows, None, None, 2)
    assert (matched, [place.conversation for place in given]) == (6, ["shop-1/0/1", "shop-1/1/1"])


def test_imported_conversations_are_asked_for_by_name_and_found_by_theirs(farm: Any) -> None:
    farm.add_run("shop-1")
    lines = export(run_source(farm.store, "shop-1"))
    old = [Bundle.model_validate_json(line.replace('"shop-1', '"old')) for line in lines]
    farm.add_import("november", old)
    client = farm.serve(farm.token())
    assert {row["source"] for row in rows_of(client, "conversations")} == {"shop-1"}
    for query in ("&run=november", "&source=imports"):
        assert {(row["source"], row["run"]) for row in rows_of(client, "conversations", query)} == {("november", "old")}
    assert client.get("/api/v1/bundles?run=november").text == "".join(f"{one.model_dump_json()}\n" for one in old)
    assert client.get("/api/v1/bundles/old/3/1").text == next(
        one.model_dump_json() for one in old if one.facts.index == 3
    )


def test_nothing_in_a_trace_breaks_an_export(farm: Any, tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(120):
        deep = [deep]
    hostile = {
        "turns": (Turn(query=HOSTILE, answer=HOSTILE),),
        "tool_calls": (
            ToolCall(name=HOSTILE, arguments={HOSTILE: deep}, error=HOSTILE, server=HOSTILE),
            ToolCall(name="=1+1", result="é" * 3_000_000),
        ),
        "served_calls": (),
    }
    farm.add_run("shop-1", cases=1, some={0: hostile})
    client = farm.serve(farm.token())
    for form in FORMATS:
        assert client.get(f"/api/v1/datasets/tools?format={form}").status_code == 200
    names = [row["tool"] for row in csv.DictReader(io.StringIO(client.get("/api/v1/datasets/tools").text, newline=""))]
    assert not [name for name in names if re.match(r"[=+\-@\t\r]", name)]
    assert {row["tool"] for row in rows_of(client, "tools")} == {"stock", "=1+1", f"{HOSTILE}/{HOSTILE}"}
    table = client.get("/api/v1/datasets/tools?format=markdown").text
    assert (len(table.splitlines()), "<script>" in table, "\x1b" in table) == (2 + 3, False, False)
    line = client.get("/api/v1/bundles/shop-1/0/1")
    assert Bundle.model_validate_json(line.text).messages[0].text == HOSTILE


def test_what_is_not_scored_is_said_to_be_left_out(farm: Any) -> None:
    farm.add_run("shop-1")
    farm.refused.add("shop-1")
    client = farm.serve(farm.token())
    told = client.get("/api/v1/datasets/versions/preview").json()
    assert told == {"dataset": "versions", "rows": 0, "left_out": [{"source": "shop-1", "why": "it cannot be scored"}]}
    assert client.get("/api/v1/datasets/conversations").headers["evalfarm-left-out"] == '["shop-1"]'
    assert len(rows_of(client, "cells")) == 2


def test_every_path_of_the_description_answers_as_it_says(api: Any) -> None:
    document = api.get("/api/v1/openapi.json").json()
    assert (document["openapi"], document["servers"]) == ("3.1.0", [{"url": "/api/v1"}])
    error = document["components"]["schemas"]["Error"]
    values = {"run": "shop-1", "trial": "0", "attempt": "1", "from": "1970-01-01", "to": "2100-01-01", "days": "1"}
    walked = 0
    for template, methods in document["paths"].items():
        assert list(methods) == ["get"]
        for name in ABOUT if "{name}" in template else ("",):
            path = f"/api/v1{template.format(name=name, **values)}"
            for parameter in [None, *(one for one in methods["get"]["parameters"] if one["in"] == "query")]:
                options = (
                    [""]
                    if parameter is None
                    else parameter["schema"].get("enum") or [values.get(parameter["name"], "x")]
                )
                for value in options:
                    query = "" if parameter is None else f"?{parameter['name']}={value}"
                    answer = api.get(path + query)
                    kind = answer.headers["content-type"].replace("; charset=utf-8", "")
                    kinds = [
                        one.replace("; charset=utf-8", "") for one in methods["get"]["responses"]["200"]["content"]
                    ]
                    assert (answer.status_code, kind in kinds) == (200, True), path + query
                    walked += 1
            refused = api.get(f"{path}?nothing=1")
            if template != "/openapi.json":
                assert refused.status_code == 400
                jsonschema.validate(refused.json(), error)
    assert walked > 100
    bundle = {"$ref": "#/components/schemas/Bundle", "components": document["components"]}
    jsonschema.validate(api.get("/api/v1/bundles/shop-1/0/1").json(), bundle)
