"""`evalfarm prune`: lets go of old runs."""

import json
import re
import time
from collections.abc import Sequence

import click

from evalfarm.cli.nights.nightly import RECENT
from evalfarm.cli.nights.opening import rule_of
from evalfarm.contracts.run import Manifest
from evalfarm.errors import ExitCode, UsageError
from evalfarm.nights import Nights
from evalfarm.outcomes import Outcomes
from evalfarm.reports.numbers import plural
from evalfarm.settings import Settings, load_settings
from evalfarm.store import Store
from scheduler.nightly.file import read_schedules
from scheduler.retention import DAY_S, Kept, baseline_runs, held_against, older, sorted_out

_UNITS = {"d": DAY_S, "w": 7 * DAY_S}


@click.command(epilog="Example: evalfarm prune --older-than 90d --label nightly --delete")
@click.option("--older-than", "age", required=True, metavar="AGE", help="As in 90d or 12w, since a run began.")
@click.option("--label", "labels", multiple=True, help="Only runs with this label. Repeatable.")
@click.option("--keep", multiple=True, metavar="RUN|LABEL", help="A run, or a label's runs, that stay. Repeatable.")
@click.option("--delete", is_flag=True, help="Do it. Without it nothing is deleted.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def prune(age: str, labels: tuple[str, ...], keep: tuple[str, ...], delete: bool, as_json: bool) -> int:
    """List the runs that are old enough to be let go; with --delete, delete them for good.

    Never a baseline: the nights that a schedule's next one may be held against, with evalfarm.toml or without, and what
    a run that stays was last judged against; nor a run that has not ended. Others are yours to name with --keep.
    Without --label, names that were taken for runs which never began go as well.
    """
    age_s = _seconds(age)
    settings = load_settings()
    store = Store(settings.store_url)
    manifests = store.runs()
    now = time.time()
    asked = older(manifests, age_s, labels, now)
    unfinished = {manifest.run for manifest in asked if store.get_summary(manifest.run) is None}
    judged = held_against(manifests, _verdicts(store, manifests), {manifest.run for manifest in asked})
    protected = dict.fromkeys(judged, "the last verdict on a later run was held against it")
    protected |= dict.fromkeys(_baselines(settings, store), "a schedule's next night may be held against it")
    going, staying = sorted_out(asked, protected, keep, unfinished)
    objects = sum(store.delete_run(run) if delete else 0 for run in going)
    names = [] if labels else _never_begun(store, now - age_s, keep)
    if delete:
        for name in names:
            store.drop_claim(name)
    going, objects = going + names, objects + (len(names) if delete else 0)  # of such a run there is the plan alone
    if as_json:
        told = {"deleted": delete, "runs": going, "kept": {kept.run: kept.why for kept in staying}}
        click.echo(json.dumps(told, indent=2))
    else:
        _show(going, staying, objects, delete=delete)
    return int(ExitCode.OK)


def _baselines(settings: Settings, store: Store) -> frozenset[str]:
    """What every schedule that the store knows may hold its next night against."""
    nights = Nights(store.objects)
    declared = read_schedules(settings.schedule_file) if settings.schedule_file.exists() else None
    found: frozenset[str] = frozenset()
    for name in nights.schedules():
        known = nights.of(name, RECENT)
        most = len(known)
        if declared is not None and name in declared.said.schedules:
            most = rule_of(declared, declared.schedule(name)).most_nights
        found |= baseline_runs(known, nights.ends(known), most)
    return found


def _never_begun(store: Store, until: float, keep: Sequence[str]) -> list[str]:
    """Names that were taken by then for runs that never began: whoever was to begin them was killed over it."""
    outcomes = Outcomes(store.objects)
    bare = (run for run in outcomes.runs() if run not in keep and not outcomes.begun(run))
    return [run for run in bare if (at := outcomes.named_at(run)) is not None and at <= until]


def _verdicts(store: Store, manifests: Sequence[Manifest]) -> dict[str, tuple[str, ...]]:
    """What each run was held against when a gate last judged it; of those that were judged against any."""
    outcomes = Outcomes(store.objects)
    last = ((one.run, names[-1]) for one in manifests if (names := outcomes.gates(one.run)))
    records = (record for run, name in last if (record := outcomes.gate(run, name)) is not None)
    return {record.run: record.baselines for record in records if record.baselines}


def _seconds(age: str) -> float:
    found = re.fullmatch(r"(\d+)([dw])", age.strip())
    if found is None:
        raise UsageError(f"{age!r} is no age", "write days or weeks: --older-than 90d, --older-than 12w")
    return int(found[1]) * _UNITS[found[2]]


def _show(going: list[str], staying: list[Kept], objects: int, *, delete: bool) -> None:
    for run in going:
        click.echo(f"{'deleted' if delete else 'would be deleted'}: {run}")
    for kept in staying:
        click.echo(f"kept: {kept.run}: {kept.why}")
    if delete:
        click.echo(f"{plural(len(going), 'run')} deleted, {plural(objects, 'object')} in all.")
    else:
        click.echo(f"{plural(len(going), 'run')} would be deleted. Nothing was: add --delete.")
