"""`evalfarm scheduler`: tends every run of a farm, whoever started it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import click

from evalfarm.cli.beside.scoring_behind import ScoringBehind
from evalfarm.cli.services.probing import health_port, probed
from evalfarm.cli.standing import Farm, open_farm
from evalfarm.errors import EvalFarmError, UnknownName
from evalfarm.exporter.serving import Pulse
from evalfarm.outcomes import Outcomes
from evalfarm.reports.numbers import plural
from evalfarm.runstate import Ledger, Progress, open_runs
from evalfarm.settings import load_settings
from scheduler.runs import TICK_S, Scheduler

#: Seconds for which the scheduler is ready after a look at every open run; sealing a large one takes some of them.
_READY_S = 60.0
#: Seconds between two looks whether the store holds runs that nobody tends.
_STORE_LOOK_S = 60.0
_MOST_NAMED = 5


@click.command(epilog="Example: EVALFARM_REDIS_URL=redis://queue:6379/0 evalfarm scheduler")
@health_port
def scheduler(health_port: int | None) -> None:
    """Tend every open run until stopped: feed, reap, archive, seal.

    The conversations of what it seals are scored meanwhile. Several may run at once; none needs to lead. A run that was
    tended here and that Redis has lost is built anew.
    """
    settings = load_settings()
    pulse = Pulse(time.monotonic, _READY_S)
    with open_farm(settings) as farm, probed(health_port, pulse):
        tender = Tender(farm, farm.scheduler(_tell), _tell, score=ScoringBehind(settings, _tell).begin)
        click.echo(f"Tending the runs in {farm.store.url}", err=True)
        said = ""
        while True:
            trouble = tender.look()
            if trouble != said:  # an outage is told of once, not twice a second
                click.echo(trouble or "every open run is tended again", err=True)
            said = trouble
            if not trouble:
                pulse.beat()
            time.sleep(TICK_S * 5)


def _tell(told: str) -> None:
    click.echo(told, err=True)


@dataclass
class Tender:
    """Looks at every open run, and at those that are not open any more and should be."""

    farm: Farm
    tending: Scheduler
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    score: Callable[[str], None] = lambda _: None  #: has the conversations of a run scored that was sealed here
    _cancelled: dict[str, bool] = field(default_factory=dict)  #: runs that were seen open here, and whether cancelled
    _over: set[str] = field(default_factory=set)  #: runs of the store that are sealed, or were told of
    _missed: set[str] = field(default_factory=set)  #: those that were neither sealed nor open at the last look
    _store_looked_at: float | None = None

    def look(self) -> str:
        """Look at every run once; what could not be done, empty when nothing."""
        try:
            runs = open_runs(self.farm.redis)
        except EvalFarmError as error:
            return str(error)
        troubles = [*map(self._tend, runs), *map(self._bring_back, sorted(self._cancelled.keys() - set(runs)))]
        try:
            self._look_for_others(set(runs))
        except EvalFarmError as error:
            troubles.append(str(error))
        return "\n".join(filter(None, troubles))

    def _tend(self, run: str) -> str:
        def note(seen: Progress) -> None:
            self._cancelled[run] = seen.cancelled

        try:
            if self.tending.look_at(run, note) is not None:
                self.score(run)
        except EvalFarmError as error:
            return f"run {run}: {error}"
        return ""

    def _bring_back(self, run: str) -> str:
        """What becomes of a run that is not open any more: it is sealed, deleted, or Redis has lost it.

        Only what was open in this very Redis is built anew: another run of the store may be at work over another
        Redis, or have been given up on purpose, and both would cost money.
        """
        self.tending.known.pop(run, None)  # a run that was deleted just now must not rise again
        try:
            if not self._cancelled[run] or self.farm.store.get_summary(run) is not None:
                if self.tending.look_at(run) is None:
                    return ""
            else:
                self.say(f"Redis has lost run {run}, which was cancelled; `evalfarm resume {run}` would go on with it")
        except UnknownName:  # deleted
            pass
        except EvalFarmError as error:
            return f"run {run}: {error}"
        self._over.add(run)
        del self._cancelled[run]
        return ""

    def _look_for_others(self, opened: set[str]) -> None:
        """Say which runs of the store nobody tends: not sealed, and not in Redis."""
        now = self.clock()
        if self._store_looked_at is not None and now - self._store_looked_at < _STORE_LOOK_S:
            return
        self._store_looked_at = now
        missing = set(self._unfinished(opened))
        # Twice, a minute apart: one that begins or is being sealed is in one place before it is in the other.
        untended = sorted(missing & self._missed)
        self._missed = missing - set(untended)
        if untended:
            self._over.update(untended)
            names = ", ".join(untended[:_MOST_NAMED]) + (", …" if len(untended) > _MOST_NAMED else "")
            told = f"{plural(len(untended), 'run')} in {self.farm.store.url} not finished, and not known to Redis"
            self.say(f"{told}: {names}. `evalfarm resume RUN` goes on with one; what is decided stays decided.")

    def _unfinished(self, opened: set[str]) -> Iterator[str]:
        outcomes = Outcomes(self.farm.store.objects)
        for run in self.farm.store.names_of_runs() - opened - self._over:
            if outcomes.summary_version(run) is not None:
                self._over.add(run)
            elif outcomes.begun(run) and Ledger(self.farm.redis, run).view() is None:
                yield run
