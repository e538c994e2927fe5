"""How many trials the models' limits let a run hand out now. Pure; what there is room for is asked in `runstate.room`.

The claim decides. But a feeder that does not look sends every trial of a model that is paused or at its cap out to a
worker, over and over, to be deferred there.
"""

import math
from collections.abc import Mapping, Sequence

from evalfarm.contracts.run import NO_MODEL, Plan
from evalfarm.runstate import Limits

#: Seconds until a trial whose model has no room is looked at again.
PUT_OFF_S = 1.0
#: Trials that wait so. Beyond them the run keeps step with its slowest model, and Redis with its 20 MB.
MOST_PUT_OFF = 1000


class Places:
    """The places that are left, model by model."""

    def __init__(self, plan: Plan, room: Mapping[str, float], handed_out: int) -> None:
        """`room` is how many trials of each model may start; `handed_out` how many of this run are on their way."""
        self._plan = plan
        self._left = dict(room)
        if len(models_of(plan)) == 1:  # of several models nobody knows whose trials are on their way
            self._left = {model: max(0, left - handed_out) for model, left in room.items()}

    @property
    def left(self) -> float:
        """Trials that may be handed out, of whatever model; infinite where one has no cap."""
        return sum(self._left.values()) if NO_MODEL not in models_of(self._plan) else math.inf

    @property
    def some_full(self) -> bool:
        """Whether a model has no place left."""
        return any(left < 1 for left in self._left.values())

    def share(self, indices: Sequence[int]) -> tuple[list[int], list[int]]:
        """Those of these trials that there is a place for, which they take, and the others."""
        now: list[int] = []
        later: list[int] = []
        for index in indices:
            model = self._plan.trial(index).arm.model
            if model != NO_MODEL:
                if self._left[model] < 1:
                    later.append(index)
                    continue
                self._left[model] -= 1
            now.append(index)
        return now, later


def models_of(plan: Plan) -> tuple[str, ...]:
    """The models of a plan's arms, `NO_MODEL` among them, each once."""
    return tuple(dict.fromkeys(arm.model for arm in plan.arms))


def most_waited_s(plan: Plan, limits: Limits) -> float:
    """Seconds for which an attempt may rightly wait beyond its time limit, because requests are metered."""
    metered = [limits.of(model) for model in models_of(plan) if limits.of(model).metered]
    return max((model.most_waited_s for model in metered), default=0.0)
