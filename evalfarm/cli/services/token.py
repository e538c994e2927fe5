"""`evalfarm token`: the personal access tokens that `evalfarm web` asks for."""

import json
import secrets
import time
from typing import Any, Literal

import click
from pydantic import TypeAdapter, ValidationError
from rich.table import Table
from rich.text import Text

from evalfarm.cli.output import stdout_console
from evalfarm.contracts.base import Name
from evalfarm.errors import UsageError
from evalfarm.reports import numbers
from evalfarm.reports.safe_text import one_line
from evalfarm.settings import load_settings
from evalfarm.store import Store
from evalfarm.web.tokens import LONGEST_NAME, RANDOM_BYTES, Token, Tokens, TokenUse, mint

Action = Literal["create", "list", "revoke"]
_SUITE: TypeAdapter[str] = TypeAdapter(Name)
_LONGEST_DAYS = 3660


@click.command(epilog="Example: evalfarm token create nightly-report --suite bls --days 30")
@click.argument("action", type=click.Choice(["create", "list", "revoke"]))
@click.argument("name", required=False)
@click.option("--suite", "suites", multiple=True, help="create: read this suite only. Repeatable. [default: all]")
@click.option(
    "--days",
    type=click.IntRange(1, _LONGEST_DAYS),
    default=90,
    show_default=True,
    help="create: how long it is good for.",
)
@click.option("--json", "as_json", is_flag=True, help="What was made, closed or listed as JSON.")
def token(action: Action, name: str | None, suites: tuple[str, ...], days: int, as_json: bool) -> None:
    """Make or revoke the tokens that `evalfarm web` asks for.

    create NAME: the token is printed once and cannot be shown again; the store keeps a digest of it. It reads, and
    nothing else. revoke NAME: by its name or its id, from the next request on.
    """
    tokens = Tokens(Store(load_settings().store_url).objects)
    if action == "list":
        _list(tokens, as_json)
    elif not name:
        raise UsageError(f"which token? `evalfarm token {action}` takes a name", f"evalfarm token {action} my-report")
    elif action == "create":
        _create(tokens, name, suites, days, as_json)
    else:
        revoked = tokens.revoke(name, time.time())
        _tell(_public(revoked, None), f"Token {revoked.id} is revoked: it opens nothing any more.", as_json)


def _create(tokens: Tokens, name: str, suites: tuple[str, ...], days: int, as_json: bool) -> None:
    for suite in suites:
        try:
            _SUITE.validate_python(suite)
        except ValidationError:
            raise UsageError(f"no suite can be called {suite!r}", "give the suite's name, as in --suite bls") from None
    if len(name) > LONGEST_NAME:
        raise UsageError(f"a token's name has {LONGEST_NAME} characters at most", "say what it is for in a few words")
    text, kept = mint(name, suites, days, random=secrets.token_bytes(RANDOM_BYTES), now_s=time.time())
    tokens.keep(kept)
    # The token alone on standard output, for a pipe; what is to be said of it beside it.
    if not as_json:
        reads = ", ".join(suites) or "every suite"
        click.echo(f"Token {kept.id} reads {reads} until {numbers.moment(kept.expires_at)}. Shown only now:", err=True)
    _tell(_public(kept, None) | {"token": text}, text, as_json)


def _list(tokens: Tokens, as_json: bool) -> None:
    found = [_public(kept, use) for kept, use in tokens.all()]
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    if not found:
        click.echo("No tokens yet. Make one: evalfarm token create my-report")
        return
    table = Table("id", "name", "suites", "state", "created (UTC)", "expires", "last used", box=None, pad_edge=False)
    for one in found:
        times = (_moment(one[key]) for key in ("created_at", "expires_at", "used_at"))
        name = Text(one_line(one["name"]))  # as text: what is in it is no mark-up of the terminal's
        table.add_row(one["id"], name, ", ".join(one["suites"]) or "all", one["state"], *times)
    stdout_console().print(table)


def _public(kept: Token, use: TokenUse | None) -> dict[str, Any]:
    """What may be shown of a token at any time."""
    told = kept.model_dump(mode="json", exclude={"schema_version", "digest"})
    return told | {"state": kept.state(time.time()), "used_at": None if use is None else use.used_at}


def _moment(epoch_s: float | None) -> str:
    return "never" if epoch_s is None else numbers.moment(epoch_s).removesuffix(" UTC")


def _tell(document: dict[str, Any], line: str, as_json: bool) -> None:
    click.echo(json.dumps(document, indent=2) if as_json else line)
