"""`evalfarm metrics` and `evalfarm import`, over stored runs, session files and exported conversations."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalfarm.analysis.conversations.sources import export, import_source, run_source
from evalfarm.contracts.bundle import Import
from evalfarm.contracts.conversation import Conversation
from evalfarm.contracts.conversation_rules import ConversationRules
from evalfarm.contracts.run import Arm, Plan, Telemetry, ToolCall, Trace, Turn
from evalfarm.contracts.suite import Case, Plugin, Server, Suite, Variant
from evalfarm.contracts.verdict import Result
from evalfarm.conversations import Conversations
from evalfarm.store import Store
from scheduler.planner import Measured, manifest_of

Run = Callable[..., Any]
_ROLLOUT = Path(__file__).parents[1] / "analysis" / "conversations" / "rollout-0.163.jsonl"
HOSTILE = "\x1b]0;owned\x07\x1b[2J<script>alert(1)</script>\u202e[bold]\x00\x9b31m| a | b |\r\n# x"


def _suite(cases: int, query: str, rules: ConversationRules) -> Suite:
    return Suite(
        suite="shop",
        version="1",
        plugin=Plugin(name="Shop"),
        server=Server(python="server.py"),
        variants={"plain": Variant(), "next": Variant(env={"NEXT": "1"})},
        conversations=rules,
        cases=tuple(Case(id=f"c{number}", turns=(f"{query} {number}?",)) for number in range(cases)),
    )


def _trace(plan: Plan, index: int, **fields: Any) -> Trace:
    told = {
        "turns": (Turn(query="How many?", answer="a" * 200),),
        "tool_calls": (ToolCall(name="stock", arguments={"id": 1}, result={"count": 3}),),
        "cost_usd": 0.01 * (1 + index % 7),
    }
    return Trace(
        run=plan.run,
        trial=plan.trial(index),
        attempt=1,
        outcome="finished",
        telemetry=Telemetry(complete=True),
        started_at=1_000_000.0 + index,
        duration_s=1.0,
        **(told | fields),
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(f"file://{tmp_path}/home/store")


@pytest.fixture
def add_run(store: Store) -> Callable[..., Plan]:
    """Stores a run whose every trial passed, with the traces' fields given, and with those of some trials."""

    def add(
        run: str,
        *,
        cases: int = 3,
        query: str = "How many",
        rules: ConversationRules | None = None,
        some: dict[int, dict[str, Any]] | None = None,
        **fields: Any,
    ) -> Plan:
        arms = tuple(Arm(model="m", harness="loop", variant=variant) for variant in ("plain", "next"))
        suite = _suite(cases, query, rules or ConversationRules())
        plan = Plan(run=run, suite=suite, arms=arms, cases=tuple(case.id for case in suite.cases), repeats=1)
        measured = Measured(versions={}, digests={}, simulated=False)
        store.put_plan(plan)
        store.put_manifest(manifest_of(plan, measured, created_at=1.0, label=f"label-{run}", filters={}))
        results = []
        for index in range(plan.size):
            trace = _trace(plan, index, **(fields | (some or {}).get(index, {})))
            store.put_trace(trace)
            results.append(Result(trial=trace.trial, attempt=1, outcome="finished", verdict="passed"))
        store.put_segment(run, 0, results)
        return plan

    return add


def test_a_run_is_scored_by_its_name_or_its_label(evalfarm: Run, add_run: Run, store: Store) -> None:
    add_run("shop-1")
    for name in ("shop-1", "label-shop-1"):
        ended = evalfarm("metrics", name)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.startswith(f"{name}: 6 conversations of 3 cases, success 100.0 %")
    assert Conversations(store.objects).rows("runs/shop-1") is not None


def test_a_worse_run_is_found_so_against_its_baseline(evalfarm: Run, add_run: Run) -> None:
    add_run("shop-1", cases=20)
    failing = (ToolCall(name="stock", arguments={"id": 1}, error="INVALID_FIELD"),) * 4
    add_run("shop-2", cases=20, tool_calls=failing, cost_usd=0.1)
    found = json.loads(evalfarm("metrics", "shop-2", "--against", "shop-1", "--json").out)
    assert [item["flag"] for item in found["attention"]] == ["succeeds_less", "costs_more", "repeats", "tool_fails"]
    assert found["against"]["comparable"] is True
    assert found["against"]["judged"]["success"]["new_cases_finding"] == "worse"
    assert found["against"]["judged"]["cost_finding"] == "dearer"
    text = evalfarm("metrics", "shop-2", "--against", "shop-1").out
    assert "Success against shop-1: worse on new cases" in text
    assert "Tool fails: stock: 160 of 160 calls fail, 100%" in text


def test_two_variants_of_one_run_are_compared(evalfarm: Run, add_run: Run) -> None:
    add_run("shop-1")
    found = json.loads(evalfarm("metrics", "shop-1@next", "--against", "shop-1@plain", "--json").out)
    assert (found["conversations"], found["against"]["all"]["conversations"]) == (3, 3)
    assert [version["variant"] for version in found["versions"]] == ["next"]


def test_a_variant_that_is_not_there_is_named(evalfarm: Run, add_run: Run) -> None:
    add_run("shop-1")
    ended = evalfarm("metrics", "shop-1@old")
    assert ended.code == 2
    assert ended.err == ("Error: 'shop-1' has no conversation of a variant 'old'\n\nhint: its variants: next, plain\n")


def test_other_prompts_are_flagged_as_not_comparable(evalfarm: Run, add_run: Run) -> None:
    add_run("shop-1")
    add_run("shop-2", query="How much")
    out = " ".join(evalfarm("metrics", "shop-2", "--against", "shop-1").out.split())
    assert "NOT COMPARABLE with shop-1: other prompts were asked: their digests differ. No change is judged." in out


def test_the_suites_own_rules_and_guards_are_used(evalfarm: Run, add_run: Run) -> None:
    guards = {"small": {"tools": ["stock"], "must_not_match": "1"}}
    add_run("shop-1", rules=ConversationRules.model_validate({"guards": guards}))
    figures = json.loads(evalfarm("metrics", "shop-1", "--json").out)["all"]
    assert (figures["figures"]["success"], figures["figures"]["base_success"]) == (0.0, 1.0)
    assert figures["guards"] == {"small": 1.0}


def test_thresholds_are_set_by_name(evalfarm: Run, add_run: Run) -> None:
    add_run("shop-1", some={0: {"tool_calls": (ToolCall(name="stock", result="x"),) * 4}})
    flags = [
        [item["flag"] for item in json.loads(evalfarm("metrics", "shop-1", "--json", *limit).out)["attention"]]
        for limit in ((), ("--threshold", "repeats=4"))
    ]
    assert flags == [["repeats"], []]
    ended = evalfarm("metrics", "shop-1", "--threshold", "repeat=4")
    assert (ended.code, ended.err.splitlines()[0]) == (
        2,
        "Error: the threshold 'repeat' cannot be: Extra inputs are not permitted",
    )


def test_levels_are_shown_as_asked(evalfarm: Run, add_run: Run) -> None:
    add_run("shop-1")
    out = evalfarm("metrics", "shop-1", "--by", "case", "--by", "day", "--markdown").out
    assert [line for line in out.splitlines() if line.startswith("### By")] == ["### By case", "### By day"]
    assert "| 1970-01-12 |" in out


def test_a_name_of_nothing_lists_what_there_is(evalfarm: Run, add_run: Run, tmp_path: Path) -> None:
    add_run("shop-1")
    _session_folder(tmp_path)
    evalfarm("import", "codex-sessions", f"{tmp_path}/sessions", "--name", "november")
    ended = evalfarm("metrics", "shop-9")
    assert ended.code == 2
    assert "nor an import of this name" in ended.err
    assert "hint: the newest runs: shop-1; imports: november" in ended.err


def test_nothing_in_a_trace_reaches_the_terminal_as_it_was(evalfarm: Run, add_run: Run) -> None:
    deep: Any = "x"
    for _ in range(120):
        deep = [deep]
    hostile = {
        "turns": (Turn(query=HOSTILE, answer=HOSTILE),),
        "tool_calls": (
            ToolCall(name=HOSTILE, arguments={HOSTILE: deep}, error=HOSTILE, server=HOSTILE),
            ToolCall(name="stock", result=HOSTILE),
        ),
    }
    add_run("shop-1", some={0: hostile})
    for form in ((), ("--markdown",), ("--json",)):
        ended = evalfarm("metrics", "shop-1", *form)
        assert ended.code == 0
        assert [letter for letter in ended.out if not letter.isprintable() and letter != "\n"] == []
    assert "<script>" not in evalfarm("metrics", "shop-1", "--markdown").out


def test_a_result_of_ten_megabytes_changes_nothing(evalfarm: Run, add_run: Run) -> None:
    add_run("shop-1", cases=1, some={0: {"tool_calls": (ToolCall(name="stock", result="é" * 5_000_000),)}})
    ended = evalfarm("metrics", "shop-1")
    assert ended.code == 0
    assert len(ended.out) < 5000


def _session_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions" / "2026" / "11" / "30"
    folder.mkdir(parents=True)
    shutil.copy(_ROLLOUT, folder / "rollout-2026-11-30T18-55-49-a.jsonl")
    (folder / "rollout-2026-11-30T19-00-00-b.jsonl").write_bytes(b"\xff\xfe nothing\n")
    return tmp_path / "sessions"


def test_session_files_are_imported_and_scored(evalfarm: Run, tmp_path: Path, store: Store) -> None:
    folder = _session_folder(tmp_path)
    ended = evalfarm("import", "codex-sessions", str(folder), "--name", "november", "--plugin", "clock")
    assert (ended.code, ended.out) == (
        0,
        "Imported 1 conversation as november; 1 session file without a conversation left out.\n"
        "Look at them: evalfarm metrics november\n",
    )
    found = json.loads(evalfarm("metrics", "november", "--json").out)
    figures = found["all"]["figures"]
    assert (figures["turns"], figures["plugin_calls"], figures["builtin_calls"], figures["requests"]) == (2, 6, 2, 8)
    assert found["versions"][0]["plugin"] == "clock"


def test_an_import_keeps_its_name_to_itself(evalfarm: Run, add_run: Run, tmp_path: Path) -> None:
    folder = _session_folder(tmp_path)
    add_run("shop-1")
    evalfarm("import", "codex-sessions", str(folder), "--name", "november")
    for name, told in (
        ("november", "there is an import 'november' already"),
        ("shop-1", "'shop-1' is a run, or the label of one, already"),
        ("label-shop-1", "'label-shop-1' is a run, or the label of one, already"),
        ("a b", "an import cannot be called 'a b'"),
    ):
        ended = evalfarm("import", "codex-sessions", str(folder), "--name", name)
        assert ended.code == 2
        assert told in ended.err


def test_a_folder_without_session_files_is_said_to_have_none(evalfarm: Run, tmp_path: Path) -> None:
    ended = evalfarm("import", "codex-sessions", str(tmp_path), "--name", "x")
    assert (ended.code, ended.err) == (
        2,
        f"Error: there is no session file under '{tmp_path}'\n\nhint: they are called rollout-….jsonl\n",
    )


def test_exported_conversations_come_back_as_they_were(
    evalfarm: Run, add_run: Run, store: Store, tmp_path: Path
) -> None:
    add_run("shop-1", some={0: {"turns": (Turn(query=HOSTILE, answer=HOSTILE),)}})
    lines = list(export(run_source(store, "shop-1")))
    file = tmp_path / "shop.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    ended = evalfarm("import", "conversations", str(file), "--name", "again")
    assert ended.out.startswith("Imported 6 conversations as again.\n")
    kept = Conversations(store.objects)
    made = kept.get_import("again")
    assert isinstance(made, Import)
    assert list(export(import_source(kept, made))) == lines
    first, again = (json.loads(evalfarm("metrics", name, "--json").out) for name in ("shop-1", "again"))
    assert (again["all"], again["versions"], again["tools"]) == (first["all"], first["versions"], first["tools"])


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda line: line.replace('"schema_version":1', '"schema_version":2'), "schema_version: Input should be 1"),
        (lambda line: "{", "Invalid JSON"),
        (lambda line: line.replace('"input":"{', '"input":"{{'), "tool_calls: an input or a result is no JSON"),
    ],
)
def test_a_line_that_does_not_fit_is_named_and_nothing_is_brought_in(
    evalfarm: Run, add_run: Run, store: Store, tmp_path: Path, spoil: Callable[[str], str], told: str
) -> None:
    add_run("shop-1")
    first, second, *_ = export(run_source(store, "shop-1"))
    file = tmp_path / "shop.jsonl"
    file.write_text(f"{first}\n\n{spoil(second)}\n", encoding="utf-8")
    ended = evalfarm("import", "conversations", str(file))
    assert ended.code == 2
    assert ended.err.startswith("Error: shop.jsonl, line 3: ")
    assert told in ended.err
    assert Conversations(store.objects).imports() == []


def test_a_conversation_that_comes_twice_is_refused(evalfarm: Run, add_run: Run, store: Store, tmp_path: Path) -> None:
    add_run("shop-1")
    first = next(export(run_source(store, "shop-1")))
    file = tmp_path / "shop.jsonl"
    file.write_text(f"{first}\n{first}\n", encoding="utf-8")
    ended = evalfarm("import", "conversations", str(file))
    assert "Error: shop.jsonl, line 2: the conversation of line 1 again" in ended.err


def test_the_parquet_rows_are_those_that_were_scored(evalfarm: Run, add_run: Run, store: Store) -> None:
    add_run("shop-1")
    evalfarm("metrics", "shop-1")
    data = Conversations(store.objects).rows("runs/shop-1")
    assert data is not None
    assert data[:4] == b"PAR1"
    assert all(name.encode() in data for name in Conversation.model_fields)
