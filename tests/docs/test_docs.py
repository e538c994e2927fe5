import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click
import pytest

from evalfarm.cli.main import cli
from evalfarm.settings import variables

PRODUCT = ("evalfarm", "cases", "scheduler", "worker", "graders")
LARGEST_PICTURE = 250_000  #: bytes; a page must load on a slow line
LONGEST_README = 150

Documents = dict[str, Any]


def commands(text: str) -> Iterator[list[str]]:
    """Every `evalfarm …` of a shell block, as arguments; variables before it and redirections after it left out."""
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if words and words[0] == "evalfarm":
            yield words[1 : words.index(">") if ">" in words else None]


def check_command(arguments: list[str], *, whole: bool = True) -> None:
    """Reads a command line as click does, running nothing. Raises what click raises, and AssertionError.

    Not `whole`: prose that may name a command without what it demands.
    """
    group = click.Context(cli, info_name="evalfarm")
    command = cli.get_command(group, arguments[0])
    assert command is not None, f"there is no command {arguments[0]!r}"
    try:
        command.make_context(arguments[0], arguments[1:], parent=group)
    except click.MissingParameter:
        if whole:
            raise


def test_every_link_leads_somewhere(documents: Documents, root: Path) -> None:
    broken = []
    for name, page in documents.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", page.prose):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = unquote(target).partition("#")
            there = (page.path.parent / path).resolve() if path else page.path
            linked = documents.get(str(there.relative_to(root)))
            if not there.exists() or (anchor and (linked is None or anchor not in linked.anchors())):
                broken.append(f"{name}: {target}")
    assert broken == []


def test_every_document_can_be_reached_from_the_readme(documents: Documents, root: Path) -> None:
    reached, waiting = set(), ["README.md"]
    while waiting:
        name = waiting.pop()
        reached.add(name)
        for target in re.findall(r"\]\(([^)#\s]+\.md)", documents[name].prose):
            linked = str((documents[name].path.parent / target).resolve().relative_to(root))
            waiting += [linked] if linked not in reached else []
    assert set(documents) - reached == set()


def test_every_command_that_is_shown_exists_with_its_options(documents: Documents) -> None:
    shown = [arguments for page in documents.values() for block in page.blocks("sh") for arguments in commands(block)]
    assert len(shown) > 5
    for arguments in shown:
        check_command(arguments)


def test_every_command_that_is_named_exists_with_its_options(documents: Documents) -> None:
    for page in documents.values():
        for code in re.findall(r"`(evalfarm [a-z][^`…]*)`", page.prose):
            for arguments in commands(code):
                check_command(arguments, whole=False)


def test_every_make_target_that_is_named_exists(documents: Documents, root: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = {
        target
        for page in documents.values()
        for code in (*re.findall(r"`([^`\n]+)`", page.prose), *page.blocks("sh"))
        for target in re.findall(r"^make ([a-z-]+)", code, flags=re.MULTILINE)
    }
    assert {"demo", "test", "check"} <= named <= targets


def test_every_variable_that_is_named_is_a_setting(documents: Documents) -> None:
    named = {variable for page in documents.values() for variable in re.findall(r"EVALFARM_[A-Z_]*[A-Z]", page.text)}
    assert named <= set(variables())


def test_the_readme_opens_with_the_two_commands_and_stays_short(documents: Documents) -> None:
    readme = documents["README.md"]
    assert [line.split("#")[0].strip() for line in readme.blocks("sh")[0].splitlines()] == ["make demo", "make test"]
    assert len(readme.text.splitlines()) <= LONGEST_README


def test_every_picture_is_small_enough_to_load(root: Path) -> None:
    sizes = {path.name: path.stat().st_size for path in (root / "docs/images").iterdir()}
    assert sizes
    assert {name: size for name, size in sizes.items() if size > LARGEST_PICTURE} == {}


@pytest.fixture(scope="module")
def messages(root: Path) -> list[str]:
    """Every text that the product can say, with … where it fills something in."""
    found = []
    for package in PRODUCT:
        for path in (root / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    found.append("".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
    return found


def test_troubleshooting_is_headed_by_what_is_really_said(documents: Documents, messages: list[str]) -> None:
    headings = re.findall(r"^## (.+)$", documents["docs/troubleshooting.md"].text, flags=re.MULTILINE)
    pieces = [piece for heading in headings for piece in heading.split(" / ")]
    unsaid = [
        piece
        for piece in pieces
        if not any(re.search(".*".join(map(re.escape, piece.split("…"))), message, re.DOTALL) for message in messages)
    ]
    assert unsaid == []


def test_the_policy_that_is_shown_plays(documents: Documents) -> None:
    namespace: dict[str, Any] = {}
    (example,) = documents["docs/simulated-models.md"].blocks("python")
    exec(compile(example, "policy.py", "exec"), namespace)
    seen = namespace["Seen"](model="sim-careful", instructions="", tools=(), turns=())
    assert namespace["POLICY"].move(seen, None) == namespace["Calls"]((namespace["Call"]("search", {"words": []}),))
