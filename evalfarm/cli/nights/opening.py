"""A schedule's run, as `evalfarm run` would open it: checked in full, and named after its night."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cases.loader import LoadedSuite, load_suite
from evalfarm.analysis.judgement.notes import ArmNote
from evalfarm.analysis.judgement.rule_file import rule_of_file
from evalfarm.analysis.statistics.regression import NIGHTLY, NightlyRule
from evalfarm.cli.reading.confirming import open_confirm
from evalfarm.cli.running.looking import check_models, look
from evalfarm.cli.running.planning import Spending
from evalfarm.cli.running.runs import chosen_cases, plan_of
from evalfarm.cli.standing import Farm
from evalfarm.contracts.run import Manifest, Plan
from evalfarm.contracts.schedule import Night, Schedule
from evalfarm.errors import EvalFarmError, UsageError
from evalfarm.runstate import live_slots
from scheduler.nightly.file import Declared
from scheduler.planner import Axes, manifest_of


def check_schedules(declared: Declared) -> None:
    """Make sure that every schedule can be planned, and its rule read; nothing is started.

    Raises UsageError naming the file and the line of the first schedule that cannot.
    """
    for name, schedule in declared.said.schedules.items():
        try:
            planned(declared, schedule, seed=0)
            rule_of(declared, schedule)
        except EvalFarmError as error:
            place = declared.place("schedules", name)
            raise UsageError(f"{place}: schedules.{name}: {error.message}", error.hint) from error


def planned(declared: Declared, schedule: Schedule, *, seed: int) -> tuple[LoadedSuite, Plan]:
    """The plan of a schedule; its run is not named yet. Raises UsageError for what cannot be planned."""
    loaded = load_suite(declared.suite(schedule))
    axes = Axes(
        schedule.models, schedule.harnesses, schedule.variants, schedule.repeats, seed=seed, judges=schedule.judges
    )
    return loaded, plan_of(loaded, axes, chosen_cases(loaded, schedule.filters, None))


def rule_of(declared: Declared, schedule: Schedule) -> NightlyRule:
    """The numbers by which a schedule's nights are judged. Raises UsageError naming the file of the rule."""
    if schedule.baseline.rule is None:
        return NIGHTLY
    path = declared.beside(schedule.baseline.rule)
    try:
        return rule_of_file(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", f"{declared.path} names it as a rule") from error


def seed_of(night: Night) -> int:
    """Another seed for every minute since 2020, and the same one for whoever opens the night."""
    began = datetime.strptime(night.stamp, "%Y%m%d-%H%M") - datetime(2020, 1, 1)
    return int(began.total_seconds() // 60)


@dataclass(frozen=True)
class FarmOpener:
    """Opens the runs of nights on a farm."""

    farm: Farm

    def open_night(self, declared: Declared, night: Night, now_s: float) -> Manifest:
        """Open a night's run, for whoever tends runs. Safe to repeat, and to do twice at once.

        Raises as `evalfarm run` does where the schedule cannot be run here.
        """
        schedule, settings = declared.schedule(night.schedule), self.farm.settings
        loaded, plan = planned(declared, schedule, seed=seed_of(night))
        plan = plan.model_copy(update={"run": night.run})
        slots = max(1, live_slots(self.farm.redis))
        budget = Spending(schedule.max_cost_usd, False, None).budget(plan, settings, slots)
        check_models(loaded, plan, settings)
        measured = look(loaded, plan, settings, self.farm.aside)
        manifest = manifest_of(
            plan, measured, created_at=now_s, label=night.schedule, filters=schedule.filters, queue="nightly"
        ).model_copy(update={"budget": budget})
        self.farm.scheduler().open_run(plan, manifest, loaded.files)
        return manifest

    def open_confirm(self, run: str, arms: Sequence[ArmNote], repeats: int, name: str) -> Manifest:
        """Open the confirm run of a night's run. Raises as `open_night`."""
        return open_confirm(self.farm, run, arms, repeats, name=name, queue="nightly")
