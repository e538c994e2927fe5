"""`evalfarm metrics`: the conversations of a run by fixed rules, and what changed against another."""

import click
from pydantic import TypeAdapter, ValidationError

from evalfarm.analysis.conversations.attention import Thresholds
from evalfarm.analysis.conversations.metrics import Metrics, measure
from evalfarm.analysis.conversations.totals import LEVELS
from evalfarm.cli.conversations.scoring import read_subject
from evalfarm.cli.showing import show
from evalfarm.errors import UsageError
from evalfarm.reports.conversations.metrics import report
from evalfarm.settings import load_settings
from evalfarm.store import Store


@click.command(epilog="Example: evalfarm metrics bls-20261201-160000 --against baseline --by skill --by tool")
@click.argument("subject", metavar="RUN[@VARIANT]")
@click.option("--against", metavar="RUN[@VARIANT]", help="The baseline: each figure is shown with its change.")
@click.option(
    "--by",
    "levels",
    multiple=True,
    type=click.Choice([*LEVELS, "tool"]),
    help="Show these groups. Repeatable. [default: plugin, skill, tool]",
)
@click.option(
    "--threshold",
    "limits",
    multiple=True,
    metavar="KEY=VALUE",
    help=f"Of the attention list: {', '.join(Thresholds.model_fields)}. Repeatable.",
)
@click.option("--json", "form", flag_value="json", help="The whole as one JSON document.")
@click.option("--markdown", "form", flag_value="markdown", help="GitHub-flavoured Markdown.")
def metrics(
    subject: str, against: str | None, levels: tuple[str, ...], limits: tuple[str, ...], form: str | None
) -> None:
    """Measure a run's conversations by fixed rules, and what changed.

    Every figure is a count, a sum or a pattern over what was recorded; no model takes part. RUN is a run, a label
    (the newest run that carries it) or an import. Costs and success are compared with paired statistics.
    """
    store = Store(load_settings().store_url)
    thresholds = read_thresholds(limits)
    now = read_subject(store, subject)
    before = None if against is None else read_subject(store, against)
    found = measure(now, before, thresholds)
    shown = levels or ("plugin", "skill", "tool")
    show(found, TypeAdapter(Metrics), lambda made: report(made, shown), form)


def read_thresholds(given: tuple[str, ...]) -> Thresholds:
    """The thresholds with those given as KEY=VALUE. Raises UsageError naming what does not fit."""
    pairs = [text.partition("=")[::2] for text in given]
    try:
        return Thresholds.model_validate_strings({key.strip(): value.strip() for key, value in pairs})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"the threshold {key!r} cannot be: {first['msg']}",
            f"write KEY=VALUE; the keys: {', '.join(Thresholds.model_fields)}",
        ) from None
