"""`evalfarm schedule`: which schedules there are, when they are due, what their nights came to; and one run now."""

import json
import time
from typing import Any, Literal

import click
from rich.table import Table

from evalfarm.cli.nights.nightly import RECENT, Watch, confirm_name
from evalfarm.cli.nights.opening import FarmOpener, check_schedules
from evalfarm.cli.output import stdout_console
from evalfarm.cli.running.runs import score, see_through
from evalfarm.cli.standing import default_workers, local_workers, open_farm
from evalfarm.contracts.schedule import Night, NightEnd, NightVerdict
from evalfarm.contracts.verdict import RunSummary
from evalfarm.errors import EvalFarmError, ExitCode, UsageError
from evalfarm.nights import Nights
from evalfarm.reports.night import lines, title
from evalfarm.reports.safe_text import cut
from evalfarm.settings import Settings, load_settings
from evalfarm.store import Store
from scheduler.nightly.calendar import dues, next_due, wall_clock
from scheduler.nightly.decisions import not_started, running_of
from scheduler.nightly.file import Declared, read_schedules

_SHOWN_NIGHTS = 5
_SHOWN_DUES = 5
_MOST_WHY = 120  #: characters of a night's reasons in the list; `--json` has all of them
_EXITS: dict[NightVerdict, ExitCode] = {
    "held": ExitCode.OK,
    "improved": ExitCode.OK,
    "regressed": ExitCode.REGRESSED,
    "inconclusive": ExitCode.INCONCLUSIVE,
    "failed": ExitCode.INFRASTRUCTURE,
    "skipped": ExitCode.INCONCLUSIVE,
}


@click.command(epilog="Example: evalfarm schedule next bls-nightly")
@click.argument("action", type=click.Choice(["list", "next", "run"]))
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def schedule(action: Literal["list", "next", "run"], name: str | None, as_json: bool) -> int:
    """List the schedules of evalfarm.toml, show when they are due next, or run one now.

    `list` shows the last nights of each, `next` its next times, both of NAME alone where it is given. `run NAME` starts
    a night at once and sees it through: run, gate, confirm run, receivers. It ends with 0 where the night held or
    improved, 1 where it regressed, 3 where that cannot be told.
    """
    settings = load_settings()
    declared = read_schedules(settings.schedule_file)
    check_schedules(declared)
    if name is not None:
        declared.schedule(name)
    if action == "run":
        if name is None:
            raise UsageError("there is nothing to run", "name a schedule: evalfarm schedule run NAME")
        return _run_now(settings, declared, name, as_json=as_json)
    names = list(declared.said.schedules) if name is None else [name]
    tell = _list if action == "list" else _next
    tell(settings, declared, names, as_json=as_json)
    return int(ExitCode.OK)


def _list(settings: Settings, declared: Declared, names: list[str], *, as_json: bool) -> None:
    nights = Nights(Store(settings.store_url).objects)
    found = {name: _told(declared, nights, name) for name in names}
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    table = Table("schedule", "suite", "next", "night", "decision", "verdict", "run, reason", box=None, pad_edge=False)
    for name, told in found.items():
        first = (name, told["suite"], told["next"])
        for night in told["nights"] or [None]:
            row = ("", "", "", "") if night is None else _row(night)
            table.add_row(*first, *row)
            first = ("", "", "")
    stdout_console().print(table)


def _row(night: dict[str, Any]) -> tuple[str, str, str, str]:
    why = "" if night["verdict"] in ("held", "improved", None) and night["run"] else cut(night["why"], _MOST_WHY)
    found = ": ".join(part for part in (night["run"], why) if part)
    return night["stamp"], night["decision"], night["verdict"] or "running", found


def _told(declared: Declared, nights: Nights, name: str) -> dict[str, Any]:
    said = declared.schedule(name)
    known = nights.of(name, _SHOWN_NIGHTS)
    ends = nights.ends(known)
    return {
        "suite": said.suite,
        "next": _moment(declared, name, next_due(said.when, time.time()).at_s),
        "nights": [_night(nights, night, ends.get(night.stamp), said.notify) for night in reversed(known)],
    }


def _night(nights: Nights, night: Night, end: NightEnd | None, receivers: tuple[str, ...]) -> dict[str, Any]:
    tellings = {name: nights.tellings(night, name) for name in receivers}
    return {
        "stamp": night.stamp,
        "decision": night.decision,
        "run": None if night.decision == "skipped" else night.run,
        "verdict": None if end is None else end.verdict,
        "accepted": None if end is None else end.accepted,
        "why": "; ".join(end.reasons) if end is not None and end.reasons else night.why,
        "told": {name: any(told is not None and told.delivered for _, told in all_) for name, all_ in tellings.items()},
    }


def _next(_settings: Settings, declared: Declared, names: list[str], *, as_json: bool) -> None:
    now_s = time.time()
    found = {name: [_moment(declared, name, at_s) for at_s in _times(declared, name, now_s)] for name in names}
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for name, times in found.items():
        click.echo(f"{name}: {', '.join(times)}")


def _times(declared: Declared, name: str, now_s: float) -> list[float]:
    when = declared.schedule(name).when
    first = next_due(when, now_s).at_s
    # What is due within a month of the first; a schedule that is seldom due shows one.
    return [first, *(due.at_s for due in dues(when, first, first + 31 * 86_400.0))][:_SHOWN_DUES]


def _moment(declared: Declared, name: str, at_s: float) -> str:
    return wall_clock(declared.schedule(name).when, at_s).isoformat(sep=" ", timespec="minutes")


def _run_now(settings: Settings, declared: Declared, name: str, *, as_json: bool) -> int:
    with open_farm(settings) as farm:
        opener = FarmOpener(farm)
        watch = Watch(farm.store, declared, opener, lambda told: click.echo(told, err=True))
        night = _begin(watch, name)
        try:
            manifest = opener.open_night(declared, night, watch.clock())
        except EvalFarmError as error:
            watch.nights.put_end(not_started(night, error.message, watch.clock()))
            raise
        slots, sealed = min(default_workers(settings), manifest.planned), list[RunSummary]()
        with local_workers(settings, night.run, slots) as crew:
            for run in (night.run, confirm_name(night.run)):
                if (seen := see_through(farm, farm.store.get_manifest(run), crew)) is None:
                    return int(ExitCode.INTERRUPTED)
                sealed.append(seen)
                watch.advance(name)
                if ended := watch.nights.ends([night]):  # by us, or by a beat that came first
                    break
        watch.tell(name)
        code = show_night(night, ended[night.stamp], as_json=as_json)
        for seen in sealed:
            score(farm, seen)
        return code


def _begin(watch: Watch, name: str) -> Night:
    """A night of now. Raises UsageError while another one runs."""
    now_s = watch.clock()
    known = watch.nights.of(name, RECENT)
    if (running := running_of(known, watch.nights.ends(known))) is not None:
        raise UsageError(f"run {running} of schedule {name!r} still runs", f"see it through: evalfarm resume {running}")
    watch.nights.since(name, now_s)
    when = watch.declared.schedule(name).when
    night = Night(
        schedule=name,
        stamp=wall_clock(when, now_s).strftime("%Y%m%d-%H%M"),
        due_at=now_s,
        decided_at=now_s,
        decision="on time",
        why="started by hand",
        next_due_at=next_due(when, now_s).at_s,
    )
    if not watch.nights.put(night):
        raise UsageError(f"schedule {name!r} has a night {night.stamp} already", "wait a minute for the next")
    return night


def show_night(night: Night, end: NightEnd, *, as_json: bool) -> int:
    """Print what a night came to; its exit code."""
    if as_json:
        click.echo(end.model_dump_json(indent=2))
    else:
        click.echo("\n".join((title(night, end), *lines(night, end))))
    return int(_EXITS[end.verdict])
