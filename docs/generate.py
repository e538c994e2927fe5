"""Writes the reference pages that follow from the code: `make docs`, or `python -m docs.generate`."""

import json
from collections.abc import Iterator
from pathlib import Path

import click

from evalfarm.cli.main import cli
from evalfarm.contracts.suite import Suite
from evalfarm.reports.run.schema import summary_schema

REFERENCE = Path(__file__).parent / "reference"
_WIDTH = 100

_INTRODUCTION = """# Commands

What `evalfarm COMMAND --help` says, for every command. This page is generated: `make docs` writes it again.
"""


def pages() -> dict[str, str]:
    """Every generated page: its name in docs/reference -> its text."""
    return {
        "cli.md": commands_page(),
        "run-summary.schema.json": summary_schema(),
        "suite.schema.json": json.dumps(Suite.model_json_schema(), indent=2, ensure_ascii=False) + "\n",
    }


def commands_page() -> str:
    """The help of `evalfarm` and of each of its commands, as Markdown."""
    sections = [f"## {name}\n\n```text\n{text}\n```\n" for name, text in _helps()]
    return "\n".join([_INTRODUCTION, *sections])


def _helps() -> Iterator[tuple[str, str]]:
    with click.Context(cli, info_name="evalfarm", terminal_width=_WIDTH, **cli.context_settings) as root:
        yield "evalfarm", cli.get_help(root)
        for name in cli.list_commands(root):
            command = cli.get_command(root, name)
            if command is not None:
                with click.Context(command, info_name=name, parent=root, terminal_width=_WIDTH) as context:
                    yield f"evalfarm {name}", command.get_help(context)


if __name__ == "__main__":
    for page, text in pages().items():
        (REFERENCE / page).write_text(text, encoding="utf-8")
