"""What came of a run, for those who watch: its tally, what gates said of it, whether its summary is another one now.

    runs/{run}/tally.json         RunTally, the newest wins
    runs/{run}/gates/{id}.json    GateRecord, create-only; an id begins with the time, so the last key is the newest

Verdicts are appended, not replaced: who asks later why somebody was woken finds what was said that night.
"""

from evalfarm.contracts.gate import GateRecord
from evalfarm.contracts.run import Manifest
from evalfarm.contracts.tally import RunTally
from evalfarm.documents import load, to_json
from evalfarm.judgings import new_id, time_id
from evalfarm.objects import Objects


class Outcomes:
    """These keys in one store. Every method raises StoreUnavailable when the backend fails."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def runs(self) -> list[str]:
        """Every run's name."""
        return self._objects.names("runs")

    def manifest(self, run: str) -> Manifest | None:
        """A run's manifest; None: it has none yet. Raises UsageError for one that another version of evalfarm made."""
        return load(self._objects, Manifest, f"runs/{run}/manifest.json")

    def begun(self, run: str) -> bool:
        """Whether a run has a manifest, of whatever version: without one, its name is taken and no more."""
        return self._objects.version(f"runs/{run}/manifest.json") is not None

    def named_at(self, run: str) -> float | None:
        """When a run's name was taken, in seconds since the epoch by the store's clock; None: it is free."""
        taken = self._objects.stamp(f"runs/{run}/plan.json")
        return None if taken is None else taken.written_at

    def summary_version(self, run: str) -> str | None:
        """What tells a run's summary from an earlier one, without reading it; None: the run is not summed up."""
        return self._objects.version(f"runs/{run}/summary.json")

    def put_tally(self, tally: RunTally) -> None:
        """Keep a run's tally, in place of an earlier one."""
        self._objects.write(f"runs/{tally.run}/tally.json", to_json(tally), create=False)

    def tally(self, run: str) -> RunTally | None:
        """A run's tally; None: it is not sealed, or was before tallies were kept."""
        return load(self._objects, RunTally, f"runs/{run}/tally.json")

    def add_gate(self, record: GateRecord, once: str | None = None) -> None:
        """Keep a verdict beside the run's earlier ones; `once` names one that may be added again and stays one."""
        name = new_id(record.at) if once is None else f"{time_id(record.at)}-{once}"
        self._objects.write(f"runs/{record.run}/gates/{name}.json", to_json(record))

    def gates(self, run: str) -> tuple[str, ...]:
        """The keys' last parts of what was said of a run, oldest first."""
        return tuple(self._objects.names(f"runs/{run}/gates"))

    def gate(self, run: str, name: str) -> GateRecord | None:
        """One verdict, by its key's last part."""
        return load(self._objects, GateRecord, f"runs/{run}/gates/{name}")
