"""What judges said and people decided, in object storage, beside the runs.

    runs/{run}/judging/plan.json                              JudgingPlan, create-only
    runs/{run}/judging/opinions/{index:07d}/{attempt}.json.zst    TrialOpinions, create-only
    runs/{run}/judging/tally.json                             JudgingTally, create-only
    runs/{run}/judging/draws/{each:07d}.json                  Draw, create-only
    judges/calibrations/{id}.json                             Calibration, create-only
    judges/uses/{digest of the labels, hex}/{id}.json         LabelsUse, create-only
    adjudications/{suite}/{id}.json                           Adjudication, create-only

Nothing here is ever overwritten. An id begins with the time, so that the order of keys is the order of events.
"""

import json
from typing import TypeVar
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from evalfarm.contracts.calibration import Calibration, LabelsUse
from evalfarm.contracts.drawn import Draw
from evalfarm.contracts.judging import Adjudication, JudgingPlan, JudgingTally, TrialOpinions
from evalfarm.objects import Objects

C = TypeVar("C", bound=BaseModel)


class Judgings:
    """The keys of judging in one store. Every method raises StoreUnavailable when the backend fails."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    # ---- a run's judging

    def fix_plan(self, plan: JudgingPlan) -> JudgingPlan:
        """Keep the plan of a run's judging, and return the one that is kept: an earlier one stays."""
        key = f"runs/{plan.run}/judging/plan.json"
        self._write(key, plan)
        return self._load(JudgingPlan, key) or plan

    def plan(self, run: str) -> JudgingPlan | None:
        """The plan of a run's judging; None: it has not begun."""
        return self._load(JudgingPlan, f"runs/{run}/judging/plan.json")

    def put_opinions(self, opinions: TrialOpinions) -> bool:
        """Keep what one attempt at judging a trial brought; False: this attempt's are there already, and stay."""
        folder = f"runs/{opinions.run}/judging/opinions/{opinions.index:07d}"
        return self._write(f"{folder}/{opinions.attempt}.json.zst", opinions)

    def opinions(self, run: str, index: int) -> tuple[TrialOpinions, ...]:
        """All attempts at judging a trial, in order."""
        folder = f"runs/{run}/judging/opinions/{index:07d}"
        numbers = sorted(int(name.partition(".")[0]) for name in self._objects.names(folder))
        found = (self._load(TrialOpinions, f"{folder}/{number}.json.zst") for number in numbers)
        return tuple(one for one in found if one is not None)

    def answers_with_opinions(self, run: str) -> frozenset[int]:
        """The trials of which opinions are kept."""
        return frozenset(int(name) for name in self._objects.names(f"runs/{run}/judging/opinions"))

    def put_tally(self, tally: JudgingTally) -> None:
        """Keep what came of a run's judging; an earlier one stays."""
        self._write(f"runs/{tally.run}/judging/tally.json", tally)

    def tally(self, run: str) -> JudgingTally | None:
        """What came of a run's judging; None: it is not over."""
        return self._load(JudgingTally, f"runs/{run}/judging/tally.json")

    # ---- calibrations

    def put_calibration(self, calibration: Calibration) -> None:
        """Keep a calibration."""
        self._write(f"judges/calibrations/{calibration.id}.json", calibration)

    def calibration_names(self) -> list[str]:
        """The keys' last parts of every calibration, oldest first: they change when, and only when, one is added."""
        return self._objects.names("judges/calibrations")

    def calibrations(self) -> list[Calibration]:
        """Every calibration, newest first."""
        return self._all(Calibration, "judges/calibrations")[::-1]

    def note_use(self, use: LabelsUse) -> tuple[LabelsUse, ...]:
        """Record that a file of labels was used, and return every use of it so far, this one included."""
        folder = f"judges/uses/{use.labels.removeprefix('sha256:')}"
        self._write(f"{folder}/{new_id(use.at)}.json", use)
        return tuple(self._all(LabelsUse, folder))

    # ---- adjudications

    def put_adjudication(self, decision: Adjudication) -> None:
        """Keep a person's decision, beside all earlier ones."""
        self._write(f"adjudications/{decision.suite}/{new_id(decision.at)}.json", decision)

    def adjudications(self, suite: str) -> tuple[Adjudication, ...]:
        """Every decision on a suite's answers, oldest first."""
        return tuple(self._all(Adjudication, f"adjudications/{suite}"))

    # ---- draws

    def fix_draw(self, made: Draw) -> Draw:
        """Keep a draw of a run's answers, and return the one of this length that is kept: an earlier one stays."""
        key = f"runs/{made.run}/judging/draws/{made.each:07d}.json"
        self._write(key, made)
        return self._load(Draw, key) or made

    def draws(self, run: str) -> tuple[Draw, ...]:
        """Every draw of a run's answers, the shortest first."""
        return tuple(self._all(Draw, f"runs/{run}/judging/draws"))

    # ---- reading and writing

    def _write(self, key: str, record: BaseModel) -> bool:
        # As `evalfarm.store` does it: half of a surrogate pair, which models do write, becomes "?".
        text = json.dumps(record.model_dump(mode="python", warnings=False), ensure_ascii=False)
        return self._objects.write(key, text.encode("utf-8", "replace"))

    def _all(self, model: type[C], folder: str) -> list[C]:
        found = (self._load(model, f"{folder}/{name}") for name in self._objects.names(folder))
        return [one for one in found if one is not None]

    def _load(self, model: type[C], key: str) -> C | None:
        data = self._objects.read(key)
        if data is None:
            return None
        try:
            return model.model_validate_json(data)
        except ValidationError as error:
            raise self._objects.unreadable(key, f"is no {model.__name__}: {error.errors()[0]['msg']}") from error


def new_id(at: float) -> str:
    """A key's last part for what happens at a time, in seconds since the epoch; unique, and sorted by the time."""
    return f"{time_id(at)}-{uuid4().hex[:8]}"


def time_id(at: float) -> str:
    """A time, in seconds since the epoch, as a text that sorts by it: what such a part begins with."""
    return f"{round(at * 1000):013d}"
