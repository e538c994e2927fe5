"""Named moments in the life of a trial, and who is at it then."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from evalfarm.runstate.scripts import script_of_run
from tests.faults.farm import Farm
from tests.faults.machine import owner_of, parent_of
from tests.faults.proxy import Trap

Script = Literal["claim", "renew", "end", "archive"]
Moment = Literal["before the claim", "while it runs", "between payload and commit", "after the commit"]
MOMENTS: tuple[Moment, ...] = (
    "before the claim",
    "while it runs",
    "between payload and commit",
    "after the commit",
)


def digest_of(script: Script) -> bytes:
    """What a call of the script is recognised by: its SHA-1."""
    return script_of_run("run", script).digest.encode()


def trial_of(trap: Trap) -> int:
    """The trial that a held script is called for: the first argument after the keys."""
    return int(trap.words[3 + int(trap.words[2])])


@dataclass
class Caught:
    """A trial at its moment: everything waits until it is let go."""

    trial: int
    process: int  #: that runs it
    let_go: Callable[[], None]  #: what was held never arrives

    @property
    def worker(self) -> int:
        """The main process of its worker."""
        return parent_of(self.process)


@contextmanager
def caught(farm: Farm, moment: Moment) -> Iterator[Callable[[], Caught]]:
    """Set a trap for the moment; the block calls what it is given to wait for it. Set before workers start."""
    if moment == "while it runs":
        hold = farm.provider.hold("case-c")
        trial = next(i for i in range(farm.plan.size) if _is_loop(farm, i, "case-c"))
        yield lambda: Caught(trial, hold.wait(), lambda: farm.provider.release(hold))
        return
    script: Script = "claim" if moment == "before the claim" else "end"
    trap = farm.proxy.trap(digest_of(script), holds_reply=moment == "after the commit", skipped=2)

    def spring() -> Caught:
        trap.wait()
        return Caught(trial_of(trap), owner_of(trap.port, farm.proxy.port), lambda: farm.proxy.release(trap, drop=True))

    yield spring


def _is_loop(farm: Farm, index: int, case: str) -> bool:
    trial = farm.plan.trial(index)
    return (trial.case, trial.arm.harness) == (case, "loop")
