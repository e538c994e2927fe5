"""Secrets that models, tools and shells wrote are replaced and counted before anything is kept."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalfarm.contracts.run import ModelRequest, ShellCommand, Telemetry, ToolCall, Trace, Turn
from worker.redaction import COMMON, SIGNS, redacted

# Put together here, so that nobody's scanner takes this file for a leak.
KEY = "sk-" + "proj-" + "a1B2" * 6
TOKEN = "eyJ" + "hbGciOiJI.eyJ" + "zdWIiOiIx.c2lnbmF0dXJl"
PEM = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\nAAAA\n-----END RSA " + "PRIVATE KEY-----"
TRIAL = {
    "index": 0,
    "case": "c",
    "repeat": 0,
    "arm": {"model": "sim-careful", "harness": "loop", "variant": "plain"},
    "seed": 1,
}


def traced(**told: Any) -> Trace:
    given_: dict[str, Any] = {
        "run": "r1",
        "trial": TRIAL,
        "attempt": 1,
        "outcome": "finished",
        "telemetry": Telemetry(complete=True),
        "started_at": 0.0,
        "duration_s": 1.0,
    }
    return Trace.model_validate(given_ | told)


@pytest.mark.parametrize(
    ("text", "clean", "kind"),
    [
        (f"use {KEY} now", "use [redacted:api-key] now", "api-key"),
        ("id AKIA" + "ABCDEFGHIJKLMNOP.", "id [redacted:api-key].", "api-key"),
        ("Authorization: Bearer abc.DEF-123456", "Authorization: Bearer [redacted:bearer-token]", "bearer-token"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic [redacted:basic-auth]", "basic-auth"),
        (f"it is {TOKEN} here", "it is [redacted:jwt] here", "jwt"),
        (f"key:\n{PEM}\nend", "key:\n[redacted:private-key]\nend", "private-key"),
        ("redis://user:hunter22@host", "redis://user:[redacted:url-password]@host", "url-password"),
        ('{"api_key": "abcdef123"}', '{"api_key": "[redacted:password]"}', "password"),
        ("OPENAI_API_KEY=abcdef123 run", "OPENAI_API_KEY=[redacted:password] run", "password"),
        ("password: hunter22", "password: [redacted:password]", "password"),
    ],
)
def test_the_common_kinds_are_replaced(text: str, clean: str, kind: str) -> None:
    found = redacted(traced(turns=[Turn(query="?", answer=text)]), {})
    assert (found.answer, found.redacted) == (clean, {kind: 1})


@pytest.mark.parametrize(
    "text",
    [
        "12 tokens, password rules, a bearer of news",
        "the secret of DEMO-102",
        "task-oriented desk-1234567890123456",
        "",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert redacted(traced(turns=[Turn(query="?", answer=text)]), {}).answer == text


def test_secrets_are_found_wherever_a_trace_holds_text() -> None:
    call = ToolCall(name="t", arguments={KEY: [KEY]}, result={"deep": [{"er": KEY}]}, error=KEY)
    trace = traced(
        turns=[Turn(query=KEY, answer=KEY)],
        tool_calls=[call],
        served_calls=[call],
        requests=[ModelRequest(started_s=0, latency_s=0, status=None, error=KEY, tries=(KEY,))],
        shell_commands=[ShellCommand(command=f"echo {KEY}", output=KEY)],
        events=[{"said": [KEY, 1, None, True]}],
        failure=f"died of {KEY}",
        telemetry=Telemetry(complete=False, gaps=(KEY,)),
    )
    found = redacted(trace, {})
    assert KEY not in found.model_dump_json()
    assert found.redacted == {"api-key": 17}
    assert found.trial == trace.trial
    assert redacted(found, {}).redacted == {}


def test_a_suites_own_patterns_and_the_workers_own_values_are_replaced_too() -> None:
    trace = traced(turns=[Turn(query="my card 4111-1111", answer="It is open-sesame, or open-sesame-2.")])
    found = redacted(trace, {"card": r"\d{4}-\d{4}"}, ["open-sesame", "open-sesame-2", "no", ""])
    assert [*found.turns] == [
        Turn(query="my card [redacted:card]", answer="It is [redacted:known], or [redacted:known].")
    ]
    assert found.redacted == {"card": 1, "known": 2}


def test_a_pattern_that_also_matches_nothing_replaces_what_it_matches() -> None:
    assert redacted(traced(turns=[Turn(query="?", answer="abc 123456")]), {"n": r"\d*"}).answer == "abc [redacted:n]"


def test_what_is_kept_is_counted_for_the_graders() -> None:
    trace = traced(turns=[Turn(query="?", answer="ok")], events=[1, 2, 3])
    assert redacted(trace, {}).telemetry.counted == {
        "turns": 1,
        "tool_calls": 0,
        "served_calls": 0,
        "requests": 0,
        "shell_commands": 0,
        "events": 3,
    }


@given(st.text(max_size=40), st.sampled_from(["\n", " ", '"', "(", "="]), st.text(max_size=40))
def test_a_key_is_found_in_any_text(before: str, sign: str, after: str) -> None:
    said = f"{before.encode(errors='replace').decode()}{sign}{KEY}{sign}{after.encode(errors='replace').decode()}"
    assert KEY not in redacted(traced(turns=[Turn(query="?", answer=said)]), {}).answer


def test_every_common_kind_has_a_name_that_tells_it() -> None:
    assert set(COMMON) == {"private-key", "bearer-token", "basic-auth", "api-key", "jwt", "url-password", "password"}


@pytest.mark.parametrize("kind", COMMON)
@given(data=st.data())
def test_whatever_a_pattern_finds_bears_one_of_its_signs(kind: str, data: Any) -> None:
    found = data.draw(st.from_regex(COMMON[kind]))
    assert any(sign in found.lower() for sign in SIGNS[kind]) or not found.isascii()
    assert redacted(traced(failure=found), {}).redacted


@given(st.text(min_size=6), st.text(), st.text())
def test_a_known_secret_is_found_wherever_it_stands(secret: str, before: str, after: str) -> None:
    assert redacted(traced(failure=before + secret + after), {}, (secret,)).redacted.get("known")
