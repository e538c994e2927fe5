"""The nights of every schedule, in object storage, beside the runs.

    schedules/{schedule}.json                                  Seen, create-only: when it was first heard of
    nights/{schedule}/{stamp}/night.json                       Night, create-only: what was decided about it
    nights/{schedule}/{stamp}/gate.json                        GateRecord, create-only: what the gate said of its run
    nights/{schedule}/{stamp}/end.json                         NightEnd, create-only: what it came to
    nights/{schedule}/{stamp}/report.md, junit.xml             what receivers are given, create-only
    nights/{schedule}/{stamp}/told/{receiver}/{n}.json         Telling, create-only: the n-th attempt at telling it
    nights/{schedule}/{stamp}/told/{receiver}/{n}-told.json    Told, create-only: how that went

Create-only writes are the lock: of two that decide about one night, or are about to tell one receiver, one learns
that it came second.
"""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from evalfarm.contracts.base import Contract
from evalfarm.contracts.gate import GateRecord
from evalfarm.contracts.schedule import Night, NightEnd, Telling, Told
from evalfarm.documents import load, to_json
from evalfarm.objects import Objects

C = TypeVar("C", bound=BaseModel)


class Seen(Contract):
    """A schedule that somebody tends."""

    since_s: float  #: seconds since the epoch


class Nights:
    """The keys of nights in one store. Every method raises StoreUnavailable when the backend fails.

    What was read is remembered, as nothing here ever changes.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: dict[str, BaseModel] = {}

    def since(self, schedule: str, now_s: float) -> float:
        """When this schedule was first heard of, which is now where it is new."""
        key = f"schedules/{schedule}.json"
        if (seen := self._load(Seen, key)) is None:
            self._write(key, Seen(since_s=now_s))
            seen = self._load(Seen, key)
        return now_s if seen is None else seen.since_s

    def schedules(self) -> list[str]:
        """Every schedule that was ever heard of."""
        return [name.removesuffix(".json") for name in self._objects.names("schedules")]

    def put(self, night: Night) -> bool:
        """Keep what was decided about a night; False: that was decided already, and stays."""
        return self._write(_key(night, "night.json"), night)

    def of(self, schedule: str, last: int) -> list[Night]:
        """The last so many nights of a schedule, in order."""
        stamps = self._objects.names(f"nights/{schedule}")[-last:]
        found = (self._load(Night, f"nights/{schedule}/{stamp}/night.json") for stamp in stamps)
        return [night for night in found if night is not None]

    def put_gate(self, night: Night, record: GateRecord) -> GateRecord:
        """Keep what the gate said of a night's run; gives what is kept: another's record, where that came first."""
        key = _key(night, "gate.json")
        self._write(key, record)
        return self._load(GateRecord, key) or record

    def put_end(self, end: NightEnd) -> bool:
        """Keep what a night came to; False: that is known already, and stays."""
        return self._write(f"nights/{end.schedule}/{end.stamp}/end.json", end)

    def ends(self, nights: Sequence[Night]) -> dict[str, NightEnd]:
        """What each of these nights came to, by stamp, as far as they have ended."""
        found = ((night.stamp, self._load(NightEnd, _key(night, "end.json"))) for night in nights)
        return {stamp: end for stamp, end in found if end is not None}

    def put_paper(self, night: Night, name: str, text: str) -> None:
        """Keep a document of a night's, `report.md` or `junit.xml`; one that is there stays."""
        self._objects.write(_key(night, name), text.encode())

    def paper(self, night: Night, name: str) -> str | None:
        """A document of a night's; None: it has none."""
        data = self._objects.read(_key(night, name))
        return None if data is None else data.decode()

    def begin_telling(self, night: Night, telling: Telling) -> bool:
        """Claim an attempt at telling a receiver; False: somebody else makes it."""
        return self._write(_key(night, f"told/{telling.receiver}/{telling.attempt}.json"), telling)

    def end_telling(self, night: Night, telling: Telling, told: Told) -> None:
        """Keep how it went."""
        self._write(_key(night, f"told/{telling.receiver}/{telling.attempt}-told.json"), told)

    def tellings(self, night: Night, receiver: str) -> list[tuple[Telling, Told | None]]:
        """The attempts at telling a receiver, in order; None: it is under way, or was never heard of again."""
        folder = _key(night, f"told/{receiver}")
        numbers = sorted(int(name.removesuffix(".json")) for name in self._objects.names(folder) if "-" not in name)
        found = (
            (self._load(Telling, f"{folder}/{number}.json"), self._load(Told, f"{folder}/{number}-told.json"))
            for number in numbers
        )
        return [(telling, told) for telling, told in found if telling is not None]

    def _write(self, key: str, record: BaseModel) -> bool:
        return self._objects.write(key, to_json(record))

    def _load(self, model: type[C], key: str) -> C | None:
        known = self._known.get(key)
        if not isinstance(known, model):
            known = load(self._objects, model, key)
            if known is not None:
                self._known[key] = known
        return known


def _key(night: Night, rest: str) -> str:
    return f"nights/{night.schedule}/{night.stamp}/{rest}"
