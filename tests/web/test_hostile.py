"""Whatever a trace holds, the page shows it as text, the export keeps its value, and the terminal stays as it was."""

import io
import json
import re
from typing import Any

import pytest
from rich.console import Console

from evalfarm.analysis.conversations.sources import read_line
from evalfarm.contracts.run import ShellCommand, ToolCall, Turn
from evalfarm.reports.run.trace_view import render_trace
from evalfarm.reports.safe_text import in_json
from evalfarm.web.exporting import FORMATS

MARKUP = "</pre></td><script>alert(1)</script><img src=x onerror=alert(1)>&amp;[bold]{{ 7*7 }}| a |\n# x"
CONTROL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x00\x7f\u202e\u2066\r"


def nested(depth: int) -> Any:
    value: Any = CONTROL
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


HOSTILE: dict[str, Any] = {
    "markup": MARKUP,
    "control characters": CONTROL,
    "10 MB": MARKUP + CONTROL + "x" * 10_000_000,
    # What bytes that are no UTF-8 come to: the mark for that, and half of a surrogate pair, as JSON can spell it.
    "no UTF-8": b"\xff\xfe\xc3\x28".decode("utf-8", "replace") + "\ud800",
    "deep nesting": nested(150),
}
#: All that could steer a terminal; a new line alone may stand.
STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture(scope="module", params=HOSTILE)
def kept(request: Any, tmp_path_factory: pytest.TempPathFactory, farm_in: Any) -> Any:
    """A farm with a run whose first conversation has it everywhere."""
    value = HOSTILE[request.param]
    text = value if isinstance(value, str) else json.dumps(value)
    short = text[:2_000]
    farm = farm_in(tmp_path_factory.mktemp("hostile"))
    call = ToolCall(name=short, arguments={short: short}, result=value, server=short)
    told = {
        "turns": (Turn(query=short, answer=short),),
        "tool_calls": (call, ToolCall(name="stock", error=short)),
        "served_calls": (call,),
        "shell_commands": (ShellCommand(command=short, output=f"{short} Permission denied", exit_code=1),),
        "failure": short,
        "session": short,
    }
    farm.add_run("shop-1", cases=1, some={0: told})
    return farm, farm.serve(open_here=True), farm.token()


def test_a_page_shows_it_as_text(kept: Any) -> None:
    _, client, _ = kept
    for path in ("/", "/runs/shop-1", "/versions/Shop", "/conversations", "/conversations/shop-1/0/1"):
        answer = client.get(path)
        assert (answer.status_code, len(answer.text) < 200_000) == (200, True), path
        assert ("<script" in answer.text, "<img" in answer.text) == (False, False)
        assert not STEERS.search(answer.text.replace("\t", ""))


def test_an_export_keeps_its_value(kept: Any) -> None:
    farm, client, token = kept
    headers = {"Authorization": f"Bearer {token}"}
    for form in FORMATS:
        for name in ("tools", "conversations"):
            assert client.get(f"/api/v1/datasets/{name}?format={form}", headers=headers).status_code == 200
    trace = farm.store.get_trace("shop-1", 0, 1)
    lines = client.get("/api/v1/bundles?run=shop-1", headers=headers).content.splitlines()
    bundle = next(found for found in map(read_line, lines) if found.facts.index == 0)
    (_, call, *_) = sorted(bundle.tool_calls, key=lambda one: one.n)
    assert bundle.messages[0].text == trace.turns[0].query
    assert [json.loads(one.result) for one in bundle.tool_calls if one.witness == "gateway"] == [
        trace.served_calls[0].result
    ]
    assert call.error == trace.tool_calls[1].error
    assert client.get("/api/v1/bundles/shop-1/0/1?format=markdown", headers=headers).status_code == 200


def test_a_terminal_stays_as_it_was(kept: Any) -> None:
    farm, _, _ = kept
    trace = farm.store.get_trace("shop-1", 0, 1)
    shown = io.StringIO()
    render_trace(trace, None, console=Console(file=shown, width=100, force_terminal=False))
    assert not STEERS.search(shown.getvalue())
    assert len(shown.getvalue()) < 50_000
    document = in_json(trace.model_dump_json(indent=2))
    assert json.loads(document) == trace.model_dump(mode="json")
    assert not STEERS.search(document)
