"""The most that a run may cost, as it was asked for when it started."""

from pydantic import Field

from evalfarm.contracts.base import Contract


class Budget(Contract):
    """US dollars. Kept in the manifest, so that a run that is built anew keeps to it."""

    max_cost_usd: float = Field(gt=0, allow_inf_nan=False)
    trial_usd: tuple[float, ...]  #: by arm, in the plan's order: what is set aside for a trial while none has ended
    judging_usd: float = 0.0  #: set aside for the judging of one answer while none has ended
    judged_share: float = 0.0  #: of the run's trials, those whose answer goes to its judges
