"""The confirm run of a gate: fresh repeats of what its screen found, as a run of its own."""

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from cases.loader import SUITE_FILE, LoadedSuite, load_suite
from evalfarm.analysis.judgement.notes import ArmNote
from evalfarm.cli.naming import new_run_id
from evalfarm.cli.running.looking import check_models, look
from evalfarm.cli.running.runs import score, see_through
from evalfarm.cli.standing import Farm, default_workers, local_workers
from evalfarm.contracts.run import Manifest, Plan, QueueName
from evalfarm.contracts.verdict import RunSummary
from evalfarm.store import Store
from scheduler.planner import manifest_of

#: Added to the seed of the run: further than any series of nightly seeds goes, so that no simulated draw repeats.
SEED_OFFSET = 1_000_000_007


def confirm_of(store: Store, run: str) -> Manifest | None:
    """The newest confirm run of a run, finished or not; None: there is none."""
    return next((manifest for manifest in store.runs() if manifest.label == label_of(run)), None)


def label_of(run: str) -> str:
    """The label that a run's confirm run carries."""
    return f"confirm/{run}"


def confirm(farm: Farm, run: str, arms: Sequence[ArmNote], repeats: int) -> RunSummary | None:
    """Run every case of a run again in some of its arms, or go on with a confirm run that was interrupted.

    The suite is the one in the store, whatever has become of its files since. None: Ctrl-C stopped it.
    Raises as `evalfarm run` does where the plan cannot run here, and where the rules disagree.
    """
    begun = confirm_of(farm.store, run)
    if begun is None:
        suite = farm.store.get_plan(run).suite.suite
        name = new_run_id(f"{suite}-confirm", time.time(), farm.store.names_of_runs())
        begun = open_confirm(farm, run, arms, repeats, name=name)
    slots = min(default_workers(farm.settings), begun.planned)
    with local_workers(farm.settings, begun.run, slots) as crew:
        sealed = see_through(farm, begun, crew)
    if sealed is not None:
        score(farm, sealed)
    return sealed


def confirm_plan(plan: Plan, arms: Sequence[ArmNote], repeats: int) -> Plan:
    """The plan of fresh repeats: the same cases, only these arms, another seed; its run is not named yet."""
    wanted = {(arm.model, arm.harness, arm.variant) for arm in arms}
    return plan.model_copy(
        update={
            "run": "unnamed",
            "arms": tuple(arm for arm in plan.arms if (arm.model, arm.harness, arm.variant) in wanted),
            "repeats": repeats,
            "seed": plan.seed + SEED_OFFSET,
        }
    )


def open_confirm(
    farm: Farm, run: str, arms: Sequence[ArmNote], repeats: int, *, name: str, queue: QueueName = "interactive"
) -> Manifest:
    """Open the confirm run of a run under a name, for whoever tends runs. Raises as `confirm`."""
    plan = farm.store.get_plan(run)
    again = confirm_plan(plan, arms, repeats).model_copy(update={"run": name})
    with tempfile.TemporaryDirectory(dir=farm.settings.home) as folder:
        loaded = _laid_out(farm.store, plan, Path(folder))
        check_models(loaded, again, farm.settings)
        measured = look(loaded, again, farm.settings, farm.aside)
    first = farm.store.get_manifest(run)
    manifest = manifest_of(
        again, measured, created_at=time.time(), label=label_of(run), filters=first.filters, queue=queue
    ).model_copy(update={"patch": first.patch})
    farm.scheduler().open_run(again, manifest, {})  # the files are in the store, since the run was opened
    return manifest


def _laid_out(store: Store, plan: Plan, folder: Path) -> LoadedSuite:
    """The suite of a stored plan as files, loaded from there."""
    for name, blob in plan.files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(store.get_blob(blob))
        target.chmod(0o755 if name in plan.executables else 0o644)
    suite = json.dumps(plan.suite.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
    (folder / SUITE_FILE).write_text(suite, encoding="utf-8")
    return load_suite(str(folder))
