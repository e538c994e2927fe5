import json
import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from evalfarm.cli.main import cli

VERBS = {
    "Run",
    "Keep",
    "Write",
    "Bring",
    "Go",
    "Print",
    "Show",
    "Judge",
    "List",
    "Check",
    "Compare",
    "Tend",
    "Measure",
    "Stop",
    "Restore",
    "Serve",
    "Make",
}
HEAVY = {"celery", "openai", "redis", "mcp", "numpy", "obstore"}
PROGRAM = """
import json, sys
from evalfarm.cli.main import guarded, cli
code = guarded(lambda: cli.main(args=sys.argv[1:], prog_name="evalfarm", standalone_mode=False))
print(json.dumps({"code": code, "loaded": sorted({name.partition(".")[0] for name in sys.modules})}), file=sys.stderr)
"""


def root() -> click.Context:
    return click.Context(cli, info_name="evalfarm", terminal_width=200, **cli.context_settings)


def commands() -> Iterator[tuple[str, click.Command]]:
    with root() as context:
        for name in cli.list_commands(context):
            command = cli.get_command(context, name)
            assert command is not None
            yield name, command


COMMANDS = dict(commands())
LISTED = dict(
    line.strip().split(maxsplit=1)
    for line in cli.get_help(root()).partition("Commands:")[2].partition("\n\n")[0].splitlines()[1:]
)


def test_help_loads_no_heavy_library_and_answers_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", PROGRAM, "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    *times, told = done.stderr.splitlines()
    # By the interpreter's own account of its imports: a busy machine stretches it, but not tenfold.
    total_us = sum(int(took) for took in re.findall(r"^import time: +(\d+) \|", "\n".join(times), flags=re.MULTILINE))
    found = json.loads(told)
    assert found["code"] == 0
    assert HEAVY & set(found["loaded"]) == set()
    assert total_us < 1_000_000


def test_every_command_is_listed_with_the_first_line_of_its_help() -> None:
    assert {name: (command.help or "").splitlines()[0] for name, command in COMMANDS.items()} == LISTED


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_s_help_begins_with_a_verb_and_ends_with_an_example(name: str) -> None:
    command = COMMANDS[name]
    assert (command.help or "").split()[0] in VERBS
    assert f"evalfarm {name}" in (command.epilog or "").removeprefix("Example: ")
    assert (command.epilog or "").startswith("Example: ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_is_for(name: str) -> None:
    options = [parameter for parameter in COMMANDS[name].params if isinstance(parameter, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"worker", "scheduler", "exporter", "beat", "up", "web"}))
def test_every_command_that_prints_something_has_it_as_json(name: str) -> None:
    assert "--json" in {option for parameter in COMMANDS[name].params for option in parameter.opts}
