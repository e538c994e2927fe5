"""The `evalfarm` command group, and how an error ends a command: one message, a hint, a documented exit code."""

import gc
import sys
from collections.abc import Callable
from importlib import import_module
from keyword import iskeyword
from typing import Any, NoReturn

import click

from evalfarm import __version__
from evalfarm.cli import early
from evalfarm.errors import EvalFarmError, ExitCode
from evalfarm.reports.safe_text import harmless

#: command -> module that holds it. Loaded when asked for: `evalfarm --help` must not import Celery or OpenAI.
_COMMANDS = {
    "run": "evalfarm.cli.running.runs",
    "resume": "evalfarm.cli.running.runs",
    "status": "evalfarm.cli.running.status",
    "cancel": "evalfarm.cli.running.mending",
    "rebuild": "evalfarm.cli.running.mending",
    "report": "evalfarm.cli.reading.results",
    "show": "evalfarm.cli.reading.results",
    "regrade": "evalfarm.cli.reading.regrading",
    "runs": "evalfarm.cli.reading.results",
    "plugin": "evalfarm.cli.plugins.plugin",
    "promote": "evalfarm.cli.plugins.regressions",
    "lock": "evalfarm.cli.plugins.regressions",
    "compare": "evalfarm.cli.reading.comparisons",
    "gate": "evalfarm.cli.reading.gating",
    "power": "evalfarm.cli.reading.comparisons",
    "aa": "evalfarm.cli.reading.comparisons",
    "metrics": "evalfarm.cli.conversations.metrics",
    "import": "evalfarm.cli.conversations.importing",
    "analyze": "evalfarm.cli.reading.analyze",
    "calibrate": "evalfarm.cli.judgement.calibrate",
    "adjudicate": "evalfarm.cli.judgement.adjudicate",
    "doctor": "evalfarm.cli.upkeep.doctor",
    "worker": "evalfarm.cli.services.working",
    "scheduler": "evalfarm.cli.services.tending",
    "schedule": "evalfarm.cli.nights.schedule",
    "beat": "evalfarm.cli.nights.beat",
    "up": "evalfarm.cli.services.up",
    "prune": "evalfarm.cli.upkeep.prune",
    "exporter": "evalfarm.cli.services.exporter",
    "web": "evalfarm.cli.services.web",
    "export": "evalfarm.cli.conversations.export",
    "token": "evalfarm.cli.services.token",
}

_EPILOG = """\b
Examples:
  evalfarm run bls --model sim-careful --repeats 3
  OPENAI_API_KEY=… evalfarm run my-suite.yaml --model gpt-5-mini --harness codex --repeats 5
  evalfarm show RUN/7
  evalfarm gate TONIGHT --baseline nightly

\b
Exit codes:
  0 done; for run: every trial was decided   1 gate: regressed; aa: not itself; calibrate: a fault
  2 bad input, nothing was started           3 too little can be said: undecided trials or evidence
  4 something evalfarm stands on failed      70 a fault of evalfarm's own
  130 stopped by Ctrl-C; evalfarm resume RUN goes on"""


class _Group(click.Group):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        attribute = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        # What is imported stays: to look for garbage among it takes a seventh of the start-up, and would be done again
        # and again while trials run.
        gc.disable()
        command: click.Command = getattr(import_module(_COMMANDS[cmd_name]), attribute)
        gc.freeze()
        gc.enable()
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _SUMMARIES[name]) for name in _COMMANDS])


#: One line per command, here so that `--help` imports none of them; a test holds them against the commands.
_SUMMARIES = {
    "run": "Run a suite and report.",
    "resume": "Go on with a run that was interrupted, and report.",
    "status": "Show how far a run is, arm by arm; without RUN, every open run.",
    "cancel": "Stop a run for good: no further trial starts, and those at work are cut short.",
    "rebuild": "Restore a run's state in Redis from object storage alone.",
    "report": "Print the report of a finished run.",
    "show": "Show what was observed in one trial, turn by turn.",
    "regrade": "Judge a run's stored traces again; no model takes part.",
    "runs": "List the runs in the store, newest first.",
    "plugin": "Measure a plugin's working tree before it is released: runs take it until it is restored.",
    "promote": "Keep a resolved failure in the suite's regression set.",
    "lock": "Write down what each version in a suite stands for.",
    "compare": "Compare two runs, or the arms of one, case by case.",
    "gate": "Judge a run against the nights before it, or against a fixed bar.",
    "power": "Show what a plan can resolve, and what an effect would take.",
    "aa": "Check a run against itself: half of its repeats against the other half.",
    "metrics": "Measure a run's conversations by fixed rules, and what changed.",
    "import": "Bring conversations from elsewhere, to be measured as a run's.",
    "analyze": "Print the report of results from elsewhere.",
    "calibrate": "Measure a judge against labelled answers, and name its faults.",
    "adjudicate": "Go through the answers of a run on which labels disagree, or that were drawn at random.",
    "doctor": "Check what is installed, what is reachable and which isolation works here.",
    "worker": "Run trials from the queue until stopped.",
    "scheduler": "Tend every open run until stopped: feed, reap, archive, seal.",
    "schedule": "List the schedules of evalfarm.toml, show when they are due next, or run one now.",
    "prune": "List the runs that are old enough to be let go; with --delete, delete them for good.",
    "up": "Run a whole farm on this machine until stopped: broker, scheduler, beat, workers, exporter, web.",
    "beat": "Run schedules when they are due, until stopped: start, judge, confirm, tell.",
    "exporter": "Show Prometheus the farm, at /metrics, until stopped.",
    "web": "Serve the console and the exports until stopped.",
    "export": "Write a dataset, or whole conversations, as a file.",
    "token": "Make or revoke the tokens that `evalfarm web` asks for.",
}


@click.group(cls=_Group, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evalfarm")
def cli() -> None:
    """Measure how well, how steadily and why a plugin or MCP server works inside the product it ships in."""


def main(argv: list[str] | None = None) -> NoReturn:
    """Run a command and exit: errors as message and hint, Ctrl-C as 130, never a traceback."""
    if argv is None:
        early.start(sys.argv[1:])
    try:
        code = guarded(lambda: cli.main(args=argv, prog_name="evalfarm", standalone_mode=False))
    finally:
        early.stop()
    sys.exit(code)


def guarded(command: Callable[[], Any]) -> int:
    """Run a command and return its exit code, with its error told on standard error."""
    try:
        code = command()
    except EvalFarmError as error:
        # What a suite's author or a server wrote may be in it.
        click.echo(f"Error: {harmless(str(error))}", err=True)
        return int(error.exit_code)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return int(ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        return int(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last resort: whatever it is, it is told in one message
        click.echo(f"Error: {import_module('evalfarm.cli.crash').tell(error)}", err=True)
        return int(ExitCode.INTERNAL)
    return int(code) if isinstance(code, int) else int(ExitCode.OK)
