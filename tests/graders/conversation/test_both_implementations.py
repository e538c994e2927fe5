"""Laws over generated conversations: Python and SQL find the same, and nothing is lost in a bundle."""

from functools import lru_cache

from hypothesis import given, settings
from hypothesis import strategies as st

from evalfarm.analysis.conversations.agreement import disagreements
from evalfarm.analysis.conversations.bundles import bundle_of, trace_of
from evalfarm.analysis.conversations.tables import Scorer
from evalfarm.contracts.bundle import Bundle
from evalfarm.contracts.conversation import Origin
from evalfarm.contracts.conversation_rules import ConversationRules, Guard
from evalfarm.contracts.run import (
    HARNESS_TOOLS,
    Arm,
    ModelRequest,
    ShellCommand,
    Telemetry,
    ToolCall,
    Trace,
    Trial,
    Turn,
)
from graders.conversation.rules import Matcher, shipped_rules
from graders.conversation.score import score

#: What the rules look for, near misses of it, and what is hard on a pattern, on JSON or on a terminal.
_PIECES = [
    *("INVALID_FIELD", "invalid_field", "No such column", "is not supported", "ValidationError", "PERMISSION_DENIED"),
    *("Permission 'a\nb' denied", "status_code=503", '{"status_code": "500"}', "status_code: 50", "UNKNOWN_EXCEPTION"),
    *("Invalid value at 'x'", "does not match its pattern", "timed out", "timed", " out"),
    *("MOCK", "MOCKUP", "placeholder", "Sample data", "not available", "The tool is unavailable", "tools aren't there"),
    *("?", "？", "?**", "curl x", "https://x", "echo hi", "bash -lc 'pwd'", "true", "null", "1e16", "is_test"),
    *("cat skills/refunds/SKILL.md", "skills//SKILL.md", "which is outside the expected set"),
    *("é", "日", "\U0001f600", "ſ", "\u212a", "İ", "e\u0301", "\u2028", "\ufeff", "a" * 150),
    *("\x00", "\x0b", "\x1b[31m", "\x85", " ", "\t", "\n", "\r", '"', "'", "\\", "\\u0041", "$", "{", "<b>"),
]
_TEXTS = st.lists(st.sampled_from(_PIECES) | st.text(max_size=3), max_size=5).map("".join)
_NUMBERS = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none()
_JSON = st.recursive(
    _NUMBERS | _TEXTS,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(_TEXTS, part, max_size=3),
    max_leaves=6,
)
_METHODS = st.sampled_from(["POST", "patch", "Put", "GET", "poſt", "DELETE\x00", ""]) | _JSON
_ARGUMENTS = _JSON | st.fixed_dictionaries({}, optional={"method": _METHODS, "http_method": _METHODS, "sql": _JSON})
_NAMES = st.sampled_from(
    ["get_record", "createRecord", "İnsert", "x.send-y", "UPSERT", "updates", "display_widget", "web_search", "shell"]
) | st.text(max_size=4)
_SECONDS = st.floats(0, 1e6, allow_subnormal=False)
_COUNTS = st.none() | st.integers(0, 10**9)

_CALLS = st.builds(
    ToolCall,
    name=_NAMES,
    arguments=_ARGUMENTS,
    result=_JSON,
    error=st.none() | _TEXTS,
    started_s=_SECONDS,
    duration_s=st.none() | _SECONDS,
    turn=st.integers(0, 3),
    server=st.none() | st.sampled_from([HARNESS_TOOLS, "", "web"]),
    call_id=st.none() | st.sampled_from(["a", "b"]),
)
_COMMANDS = st.builds(
    ShellCommand, command=_TEXTS, output=_TEXTS, exit_code=st.none() | st.integers(0, 255), turn=st.integers(0, 3)
)
_REQUESTS = st.builds(
    ModelRequest,
    started_s=_SECONDS,
    latency_s=_SECONDS,
    status=st.none() | st.sampled_from([199, 200, 299, 300, 500]),
    input_tokens=_COUNTS,
    cached_tokens=_COUNTS,
    output_tokens=_COUNTS,
    cached_write_tokens=_COUNTS,
    side=st.booleans(),
    cost_usd=st.none() | st.floats(0, 100),
    tries=st.lists(_TEXTS, max_size=2).map(tuple),
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """A trace whose witnesses tell of some of the same calls, in some order."""
    told = draw(st.lists(_CALLS, max_size=4))
    served = draw(st.lists(st.sampled_from(told) | _CALLS if told else _CALLS, max_size=4))
    return Trace(
        run="r",
        trial=Trial(
            index=draw(st.integers(0, 10**6)),
            case="c",
            repeat=draw(st.integers(0, 9)),
            seed=draw(st.integers(0, 2**63 - 1)),
            arm=Arm(model=draw(_TEXTS), harness=draw(st.sampled_from(["direct", "loop", "codex"])), variant="v"),
        ),
        attempt=draw(st.integers(1, 3)),
        outcome=draw(st.sampled_from(["finished", "gave_up", "timed_out", "crashed", "infra_failed"])),
        failure=draw(st.none() | _TEXTS),
        turns=draw(st.lists(st.builds(Turn, query=_TEXTS, answer=_TEXTS), max_size=3).map(tuple)),
        tool_calls=tuple(told),
        served_calls=tuple(served),
        requests=draw(st.lists(_REQUESTS, max_size=4).map(tuple)),
        shell_commands=draw(st.lists(_COMMANDS, max_size=3).map(tuple)),
        telemetry=Telemetry(complete=draw(st.booleans()), gaps=draw(st.lists(_TEXTS, max_size=2).map(tuple))),
        versions=draw(st.dictionaries(_TEXTS, _TEXTS, max_size=2)),
        started_at=draw(st.floats(0, 4e9)),
        duration_s=draw(_SECONDS),
        cost_usd=draw(st.none() | st.floats(0, 100)),
    )


_ORIGINS = st.builds(
    Origin,
    suite=_TEXTS,
    plugin=_TEXTS,
    plugin_digest=st.none() | _TEXTS,
    skill=st.none() | st.sampled_from(["", "refunds", "é"]),
    skill_digests=st.dictionaries(st.sampled_from(["refunds", "é", ""]), _TEXTS),
    counted=st.booleans(),
    verdict=st.none() | st.sampled_from(["passed", "failed", "inconclusive", "infra_failed"]),
    reasons=st.lists(_TEXTS, max_size=2).map(tuple),
)


@lru_cache(maxsize=1)
def _rules() -> ConversationRules:
    guards = {
        "scoped": Guard(tools=("get_record", "shell"), argument="sql", must_match="is_test"),
        "quiet": Guard(tools=("get_record",), must_not_match=r"\bis_test\b|é"),
    }
    return shipped_rules().extended(ConversationRules(guards=guards, schema_errors=(r"[^\w ]{3,}日?",)))


@lru_cache(maxsize=1)
def _scorer() -> Scorer:
    return Scorer(_rules())


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(traces(), _ORIGINS), min_size=1, max_size=6))
def test_python_and_sql_find_the_same_in_every_conversation(seen: list[tuple[Trace, Origin]]) -> None:
    # A conversation is known by its name, and no two have one.
    named = [(trace.model_copy(update={"attempt": number}), origin) for number, (trace, origin) in enumerate(seen, 1)]
    python = [score(trace, origin, Matcher(_rules())) for trace, origin in named]
    sql = _scorer().score(bundle_of(trace, origin) for trace, origin in named)
    assert list(disagreements(python, sql)) == []


@settings(deadline=None, max_examples=60)
@given(traces(), _ORIGINS)
def test_a_bundle_gives_its_trace_back_through_json(trace: Trace, origin: Origin) -> None:
    read = Bundle.model_validate_json(bundle_of(trace, origin).model_dump_json())
    assert trace_of(read) == (trace, origin)


@settings(deadline=None, max_examples=30)
@given(traces(), _ORIGINS)
def test_a_conversation_scores_the_same_after_it_was_brought_elsewhere(trace: Trace, origin: Origin) -> None:
    matcher = Matcher(_rules())
    assert score(*trace_of(bundle_of(trace, origin)), matcher) == score(trace, origin, matcher)
