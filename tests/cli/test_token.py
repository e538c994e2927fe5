"""`evalfarm token`: made, listed and closed by words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalfarm.store import Store
from evalfarm.web.tokens import Tokens

Run = Callable[..., Any]


def kept(tmp_path: Path) -> Tokens:
    return Tokens(Store(f"file://{tmp_path}/home/store").objects)


def test_a_token_is_printed_once_and_alone(evalfarm: Run, tmp_path: Path) -> None:
    ended = evalfarm("token", "create", "nightly report", "--suite", "bls", "--days", "2")
    text = ended.out.strip()
    found = kept(tmp_path).find(text)
    assert found is not None
    assert (found.name, found.suites, found.expires_at - found.created_at) == ("nightly report", ("bls",), 2 * 86_400)
    assert ended.err.startswith(f"Token {found.id} reads bls until ")
    listed = evalfarm("token", "list").out
    assert (found.id in listed, "active" in listed, text in listed) == (True, True, False)
    assert text not in evalfarm("token", "list", "--json").out


def test_as_json_the_token_is_a_field_of_its_own(evalfarm: Run) -> None:
    made = json.loads(evalfarm("token", "create", "x", "--json").out)
    assert sorted(made) == [
        "created_at",
        "expires_at",
        "id",
        "name",
        "revoked_at",
        "state",
        "suites",
        "token",
        "used_at",
    ]
    (listed,) = json.loads(evalfarm("token", "list", "--json").out)
    assert listed == {name: value for name, value in made.items() if name != "token"}


def test_a_token_is_revoked_by_its_name_or_its_id(evalfarm: Run, tmp_path: Path) -> None:
    texts = [evalfarm("token", "create", name).out.strip() for name in ("one", "two")]
    second = json.loads(evalfarm("token", "list", "--json").out)[1]["id"]
    assert "is revoked: it opens nothing any more." in evalfarm("token", "revoke", "one").out
    assert json.loads(evalfarm("token", "revoke", second, "--json").out)["state"] == "revoked"
    found = [kept(tmp_path).find(text) for text in texts]
    assert [one is not None and one.state(0.0) for one in found] == ["revoked", "revoked"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("create",), "which token? `evalfarm token create` takes a name"),
        (("revoke",), "which token? `evalfarm token revoke` takes a name"),
        (("revoke", "x"), "there is no token 'x'"),
        (("create", "x", "--suite", "a b"), "no suite can be called 'a b'"),
        (("create", "x" * 101), "a token's name has 100 characters at most"),
    ],
)
def test_what_cannot_be_is_said(evalfarm: Run, words: tuple[str, ...], told: str) -> None:
    ended = evalfarm("token", *words)
    assert (ended.code, ended.out, ended.err.splitlines()[0]) == (2, "", f"Error: {told}")


def test_without_a_token_the_list_says_how_to_make_one(evalfarm: Run) -> None:
    assert evalfarm("token", "list").out == "No tokens yet. Make one: evalfarm token create my-report\n"


def test_a_name_cannot_steer_the_terminal(evalfarm: Run) -> None:
    evalfarm("token", "create", "\x1b[2J[bold]x")
    listed = evalfarm("token", "list").out
    assert ("\x1b" in listed, "[bold]x" in listed) == (False, True)
