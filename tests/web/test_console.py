"""The console: its numbers are the export's, its texts are text, and what one looks for can be found by links."""

import json
import re
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from evalfarm.analysis.conversations.sources import export, run_source
from evalfarm.contracts.bundle import Bundle
from evalfarm.contracts.run import ShellCommand, ToolCall, Turn
from evalfarm.reports import numbers
from evalfarm.reports.conversations.changes import written
from evalfarm.web.access import Allowed
from evalfarm.web.asking import Ask
from evalfarm.web.conversation_list import other_pages, read, read_narrowed
from evalfarm.web.rows import open_rows
from evalfarm.web.version_page import WORDS

HOSTILE = "\x1b]0;x\x07</pre><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e{{ 7*7 }}"
VOID = {"meta", "link", "input", "br", "img", "circle", "path", "rect", "line"}


class Page(HTMLParser):
    """What a page says: its texts, its tables, its links; and whether its elements close as they opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.labelled: set[str] = set()
        self.ids: list[str] = []
        self._open: list[str] = []
        self._cell = False
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        self.tags.append(tag)
        if tag not in VOID:
            self._open.append(tag)
        if tag == "a":
            self.links.append(said["href"] or "")
        if "id" in said:
            self.ids.append(said["id"] or "")
        if "aria-labelledby" in said:
            self.labelled.add(said["aria-labelledby"] or "")
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._cell = True
        if tag == "span" and self._cell:
            self.tables[-1][-1][-1] += " "

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag
        if tag in ("td", "th"):
            self._cell = False

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._cell:
            self.tables[-1][-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def page(client: Any, path: str, status: int = 200) -> Page:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "script" not in answer.headers["content-security-policy"]
    found = Page(answer.text)
    assert "script" not in found.tags
    assert found.labelled <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    return found


def rows_of(client: Any, dataset: str, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/datasets/{dataset}.json?{query}").json()
    return found


WORSE = {
    "tool_calls": (ToolCall(name="stock", arguments={"id": 1}, error="INVALID_FIELD"),) * 4,
    "served_calls": (ToolCall(name="stock", arguments={"id": 1}, error="INVALID_FIELD"),) * 4,
    "cost_usd": 0.5,
}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory, farm_in: Any) -> Any:
    """Two versions of a plugin, the second one worse; a run of another suite; one at work."""
    farm = farm_in(tmp_path_factory.mktemp("console"))
    farm.add_run("shop-1", cases=8, label="good")
    farm.add_run(
        "shop-2", cases=8, plugin_version="1.1.0", started_at=farm.clock() + 100, verdicts={0: "failed"}, **WORSE
    )
    farm.add_run("bank-1", suite="bank")
    farm.add_run("shop-3", sealed=False)
    return farm.serve(open_here=True)


def test_runs_are_listed_with_their_counts_as_the_export_has_them(console: Any) -> None:
    found = page(console, "/")
    exported = rows_of(console, "runs")
    shown = [[row[0].split()[0], *row[3:]] for row in found.tables[0][1:]]
    counts = ("planned", "passed", "failed", "inconclusive", "infra_failed", "not_run")
    assert shown == [
        [row["run"], *("–" if row[name] is None else f"{row[name]:,}" for name in counts)] for row in exported
    ]
    assert [link for link in found.links if link.startswith("/runs/")] == [f"/runs/{row['run']}" for row in exported]


def test_a_run_shows_its_arms_as_the_export_has_them(console: Any) -> None:
    found = page(console, "/runs/shop-2")
    for shown, row in zip(found.tables[0][1:], rows_of(console, "cells", "run=shop-2"), strict=True):
        assert shown[0] == f"m · loop · {row['variant']}"
        assert shown[1].startswith(numbers.percent(row["pass_rate"]))
        assert shown[2:7] == [str(row[n]) for n in ("passed", "failed", "inconclusive", "infra_failed", "not_run")]
        assert shown[8:] == [numbers.seconds(row["latency_p50_s"]), numbers.cost(row["cost_per_question_usd"])]
    assert "svg" in found.tags or "Case by repeat" not in found.text


def test_from_a_failing_case_one_link_leads_to_its_conversation(console: Any) -> None:
    run = page(console, "/runs/shop-2")
    missed = run.tables[1]
    assert [row[1] for row in missed[1:]] == ["0 of 1"]
    assert missed[1][4] == "no"
    trial = next(link for link in run.links if link.startswith("/conversations/shop-2/0"))
    conversation = page(console, trial)
    assert "FAIL answer 1 no" in conversation.text
    assert "failed" in conversation.text
    assert conversation.text.count("INVALID_FIELD") >= 4


def test_every_link_of_every_page_leads_somewhere(console: Any) -> None:
    waiting, seen = ["/", "/versions"], set[str]()
    while waiting:
        path = waiting.pop().partition("#")[0]
        alike = re.sub(r"case=c[1-9]", "case=c0", re.sub(r"^(/conversations/[^/]+)/[1-9]\d*", r"\1/0", path))
        if not path or alike in seen:
            continue
        seen.add(alike)
        seen.add(path)
        answer = console.get(path)
        assert answer.status_code == 200, path
        if answer.headers["content-type"].startswith("text/html") and not path.endswith("/report"):
            waiting += page(console, path).links
    assert len(seen) > 25


def test_conversations_are_listed_newest_first_as_the_export_has_them(console: Any) -> None:
    found = page(console, "/conversations?run=shop-2")
    exported = rows_of(console, "conversations", "run=shop-2")
    exported.sort(key=lambda row: (-row["started_at"], row["conversation"]))
    assert [row[0] for row in found.tables[0][1:]] == [f"{row['case']} {row['conversation']}" for row in exported]
    assert [row[6] for row in found.tables[0][1:]] == [numbers.cost(row["cost_usd"]) for row in exported]
    assert f"{len(exported)} conversations." in found.text
    links = [link for link in found.links if link.startswith("/conversations/")]
    assert links == [f"/conversations/{row['conversation']}" for row in exported]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("run=shop-2&failed=1", {"run": "shop-2", "verdict": "failed"}),
        ("run=shop-2&failed=0&case=c3", {"run": "shop-2", "case": "c3"}),
        ("label=good&case=c3&model=m&harness=loop&variant=next", {"label": "good", "case": "c3", "variant": "next"}),
        ("suite=&run=shop-1&label=&version=&case=c0&days=&failed=", {"run": "shop-1", "case": "c0"}),
        ("run=shop-3", {"run": "shop-3"}),
        ("case=' OR true --", {"case": "' OR true --"}),
    ],
)
def test_filters_of_the_list_hold_together(console: Any, query: str, kept: dict[str, str]) -> None:
    found = page(console, f"/conversations?{query}")
    fits = [row for row in rows_of(console, "conversations") if kept.items() <= row.items()]
    assert {link for link in found.links if link.startswith("/conversations/")} == {
        f"/conversations/{row['conversation']}" for row in fits
    }
    assert len(fits) in (0, 1, 2)
    assert f"{len(fits)} conversation" in found.text


@pytest.mark.parametrize("query", ["page=0", "page=x", "page=101", "page=1&page=2", "colour=red", "case=a&case=b"])
def test_what_cannot_be_listed_is_refused(console: Any, query: str) -> None:
    assert page(console, f"/conversations?{query}", 400).text.startswith("400")


def test_a_long_list_is_shown_a_hundred_at_a_time(row: Any, hold: Any, tmp_path: Path) -> None:
    seen = hold([row(conversation=f"r/{number}/1", started_at=float(number)) for number in range(250)])
    pages = []
    with open_rows(seen, Ask(), Allowed(), today=date(2026, 11, 30), folder=tmp_path) as rows:
        for number in (1, 2, 3):
            narrowed = read_narrowed([("page", str(number))])
            listed = read(rows, narrowed)
            assert listed.matched == 250
            pages.append(([one["conversation"] for one in listed.rows], other_pages(Ask(), narrowed, listed.matched)))
    assert [name for names, _ in pages for name in names] == [f"r/{number}/1" for number in reversed(range(250))]
    assert [steps for _, steps in pages] == [
        (("Older", "/conversations?page=2"),),
        (("Newer", "/conversations?page=1"), ("Older", "/conversations?page=3")),
        (("Newer", "/conversations?page=2"),),
    ]


def test_from_a_run_s_arm_and_case_a_link_leads_to_their_conversations(console: Any) -> None:
    links = page(console, "/runs/shop-2").links
    arm = "/conversations?run=shop-2&model=m&harness=loop&variant="
    assert [link for link in links if link.startswith(arm)] == [f"{arm}next", f"{arm}plain"]
    (failed,) = (row for row in rows_of(console, "conversations", "run=shop-2") if row["verdict"] == "failed")
    of_case = f"/conversations?run=shop-2&case={failed['case']}&model=m&harness=loop&variant={failed['variant']}"
    assert of_case in links
    shown = [link for link in page(console, of_case).links if link.startswith("/conversations/")]
    assert shown == [f"/conversations/{failed['conversation']}"]


def test_the_versions_page_says_what_the_export_says(console: Any) -> None:
    chosen = rows_of(console, "versions", "plugin=Shop")
    worse = next(row for row in chosen if row["plugin_version"] == "1.1.0")
    good = next(r for r in chosen if r["plugin_version"] == "1.0.0" and r["variant"] == worse["variant"])
    found = page(console, f"/versions/Shop?version={worse['version']}&against={good['version']}")
    for figure, word in WORDS.items():
        assert f"{word} {written(figure, worse[figure])} was {written(figure, good[figure])}" in found.text
    table = found.tables[1]
    assert [row[2] for row in table[1:]] == [f"{row['conversations']:,}" for row in chosen]
    told = [[row[at].split(" ")[0] for at in (3, 4, 5)] for row in table[1:]]
    assert told == [
        [written(name, row[name]).split(" ")[0] for name in ("success", "completed", "cost_usd")] for row in chosen
    ]
    skills, tools = (rows_of(console, name, f"version={worse['version']}") for name in ("skills", "tools"))
    assert found.tables[2][1][1] == str(skills[0]["conversations"])
    assert [row[2] for row in found.tables[3][1:]] == [str(row["calls"]) for row in tools]


def test_the_versions_page_names_what_got_worse(console: Any) -> None:
    of_shop = rows_of(console, "versions", "plugin=Shop")
    chosen = {(row["plugin_version"], row["variant"]): row["version"] for row in of_shop}
    pair = f"version={chosen['1.1.0', 'plain']}&against={chosen['1.0.0', 'plain']}"
    found = page(console, f"/versions/Shop?{pair}")
    assert [row[0] for row in found.tables[0][1:]] == [
        "Succeeds less often",
        "Costs more",
        "Repeats calls",
        "Tool fails",
    ]
    assert "Success against 1.0.0 · plain" in found.text
    assert "worse on new cases" in found.text
    assert "dearer" in found.text
    links = [link for link in found.links if link.startswith("/conversations/shop-2/")]
    assert len(links) >= 4


def test_the_newest_version_is_compared_with_the_one_before_it(console: Any) -> None:
    names = [row["version"] for row in rows_of(console, "versions", "plugin=Shop")]
    text = console.get("/versions/Shop").text
    assert re.findall(r'value="([^"]+)" selected', text) == [names[-1], names[-2]]
    assert "was" not in page(console, "/versions/Shop?against=none").tables[0][0]


def test_other_prompts_are_not_compared(farm: Any) -> None:
    farm.add_run("shop-1")
    farm.add_run("shop-2", plugin_version="2.0.0", query="How much", started_at=farm.clock() + 9)
    client = farm.serve(open_here=True)
    names = {(row["plugin_version"], row["variant"]): row["version"] for row in rows_of(client, "versions")}
    found = page(client, f"/versions/Shop?version={names['2.0.0', 'plain']}&against={names['1.0.0', 'plain']}")
    assert "NOT COMPARABLE with 1.0.0 · plain" in found.text


def test_nothing_in_a_trace_is_more_than_text_on_a_page(farm: Any) -> None:
    hostile = {
        "turns": (Turn(query=HOSTILE, answer=HOSTILE),),
        "tool_calls": (ToolCall(name=HOSTILE, arguments={HOSTILE: HOSTILE}, error=HOSTILE, server=HOSTILE),),
        "served_calls": (ToolCall(name="stock", result=HOSTILE * 100_000),),
        "shell_commands": (ShellCommand(command=HOSTILE, output=f"{HOSTILE} Permission denied", exit_code=1),),
        "failure": HOSTILE,
        "versions": {HOSTILE: HOSTILE},
    }
    farm.add_run("shop-1", cases=1, some={0: hostile})
    client = farm.serve(open_here=True)
    pages = ("/", "/runs/shop-1", "/versions", "/versions/Shop", "/conversations", "/conversations/shop-1/0/1")
    for path in pages:
        answer = client.get(path)
        assert len(answer.text) < 200_000
        assert ("<script" in answer.text, "<img" in answer.text, "49" in answer.text.partition("{{")[2][:4]) == (
            False,
            False,
            False,
        )
        page(client, path)
    text = page(client, "/conversations/shop-1/0/1").text
    assert "\\x1b]0;x\\x07</pre><script>alert(1)</script>" in text
    assert "more characters)" in text
    assert "{{ 7*7 }}" in text
    assert text.count("Permission denied") == 2


def test_a_conversation_shows_its_witnesses_and_what_was_refused(farm: Any) -> None:
    call = ToolCall(name="stock", arguments={"id": 1}, result={"count": 3})
    told = {
        "tool_calls": (call, ToolCall(name="wipe", arguments={}, error="no such tool")),
        "served_calls": (call, ToolCall(name="stock", arguments={"id": 2}, result=1)),
        "shell_commands": (ShellCommand(command="curl x", output="curl: Could not resolve host: x", exit_code=6),),
    }
    farm.add_run("shop-1", cases=1, some={0: told})
    text = page(farm.serve(open_here=True), "/conversations/shop-1/0/1").text
    assert "the tool gateway saw the same" in text
    assert "NOT seen by the tool gateway" in text
    assert "seen by the tool gateway ONLY" in text
    refused = text.partition("What was refused")[2]
    assert "call of wipe, turn 1 no such tool" in refused
    assert "curl x curl: Could not resolve host: x" in refused


def test_an_imported_conversation_has_a_page(farm: Any) -> None:
    farm.add_run("shop-1", cases=1)
    old = [line.replace('"shop-1', '"old') for line in export(run_source(farm.store, "shop-1"))]
    farm.add_import("november", [Bundle.model_validate_json(line) for line in old])
    client = farm.serve(open_here=True)
    assert "c0, repeat 1" in page(client, "/conversations/old/0/1").text
    assert json.loads(client.get("/conversations/old/0/1/bundle.json").text) in [json.loads(line) for line in old]
    assert unquote("/versions/Shop") in page(client, "/versions").links


def test_a_run_at_work_and_one_that_is_nowhere_say_so(console: Any) -> None:
    assert "It is at work" in page(console, "/runs/shop-3").text
    assert "there is no run 'shop-9'" in page(console, "/runs/shop-9", 404).text
    assert "there is nothing here" in page(console, "/nowhere", 404).text


def test_a_run_that_cannot_be_scored_is_said_to_be_in_no_figure(farm: Any) -> None:
    farm.add_run("shop-1")
    farm.refused.add("shop-1")
    client = farm.serve(open_here=True)
    for path in ("/", "/runs/shop-1", "/versions"):
        assert "In no figure of conversations: shop-1: it cannot be scored" in page(client, path).text


def test_the_report_of_a_run_is_the_one_that_the_command_writes(console: Any) -> None:
    answer = console.get("/runs/shop-1/report")
    assert answer.text.startswith("<!doctype html>")
    assert "style-src 'unsafe-inline'" in answer.headers["content-security-policy"]


def test_forms_ask_by_filters_that_a_link_can_carry(console: Any) -> None:
    assert [row[0].split()[0] for row in page(console, "/?suite=bank&label=&days=").tables[0][1:]] == ["bank-1"]
    assert page(console, "/?days=x", 400).text.startswith("400")


@pytest.mark.parametrize("file", ["trials.csv", ".csv", "runs.exe", "runs"])
def test_a_file_that_there_is_not_is_not_found(console: Any, file: str) -> None:
    answer = console.get(f"/datasets/{file}")
    assert (answer.status_code, "there is no such file" in answer.text) == (404, True)
