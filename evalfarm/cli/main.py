"""The `evalfarm` command group, and how an error ends a command: one message, a hint, a documented exit code."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import click

from evalfarm import __version__
from evalfarm.errors import EvalFarmError, ExitCode

#: command -> module that holds it. Loaded when asked for: `evalfarm --help` must not import Celery or OpenAI.
_COMMANDS = {
    "run": "evalfarm.cli.runs",
    "resume": "evalfarm.cli.runs",
    "report": "evalfarm.cli.results",
    "show": "evalfarm.cli.results",
    "regrade": "evalfarm.cli.results",
    "runs": "evalfarm.cli.results",
    "doctor": "evalfarm.cli.doctor",
    "worker": "evalfarm.cli.services",
    "scheduler": "evalfarm.cli.services",
}

_EPILOG = """\b
Examples:
  evalfarm run bls --model sim-careful --repeats 3
  OPENAI_API_KEY=… evalfarm run my-suite.yaml --model gpt-5-mini --harness codex --repeats 5
  evalfarm show RUN/7

\b
Exit codes:
  0 done; for run: every trial was decided   2 bad input, nothing was started
  3 some trials could not be judged          4 something evalfarm stands on failed
  130 stopped by Ctrl-C; evalfarm resume RUN goes on"""


class _Group(click.Group):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(_COMMANDS[cmd_name]), cmd_name)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _SUMMARIES[name]) for name in _COMMANDS])


#: One line per command, here so that `--help` imports none of them; a test holds them against the commands.
_SUMMARIES = {
    "run": "Run a suite and report.",
    "resume": "Go on with a run that was interrupted, and report.",
    "report": "Print or write the report of a finished run.",
    "show": "Show what was observed in one trial, turn by turn.",
    "regrade": "Judge a run's stored traces again; no model takes part.",
    "runs": "List the runs in the store, newest first.",
    "doctor": "Check what is installed, what is reachable and which isolation works here.",
    "worker": "Run trials from the queue until stopped.",
    "scheduler": "Tend every open run until stopped: feed, reap, archive, seal.",
}


@click.group(cls=_Group, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evalfarm")
def cli() -> None:
    """Measure how well, how steadily and why a plugin or MCP server works inside the product it ships in."""


def main(argv: list[str] | None = None) -> NoReturn:
    """Run a command and exit: errors of ours as message and hint, Ctrl-C as 130, never a traceback for either."""
    sys.exit(guarded(lambda: cli.main(args=argv, prog_name="evalfarm", standalone_mode=False)))


def guarded(command: Callable[[], Any]) -> int:
    """Run a command and return its exit code, with its error told on standard error."""
    try:
        code = command()
    except EvalFarmError as error:
        click.echo(f"Error: {error}", err=True)
        return int(error.exit_code)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return int(ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        return int(ExitCode.INTERRUPTED)
    return int(code) if isinstance(code, int) else int(ExitCode.OK)
