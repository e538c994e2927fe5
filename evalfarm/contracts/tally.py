"""What a run took, attempt by attempt: what only the ledger knew, kept when the run lets go of its place in Redis."""

from evalfarm.contracts.base import Contract, Name
from evalfarm.contracts.verdict import Verdict


class TokenCounts(Contract):
    """Tokens of the counted attempts, each token in one figure only; what a provider did not report counts as none."""

    input: int  #: read, and not out of the provider's cache
    cached: int  #: read out of the cache
    output: int  #: written, without the reasoning
    reasoning: int


class ArmTally(Contract):
    """One arm of a run."""

    model: str
    harness: str
    variant: Name
    closed: dict[Verdict, int]  #: trials as the ledger closed them, before any judge
    failures: dict[str, int]  #: attempts that infrastructure ended, tried again or not, by what broke
    known_usd: float  #: of every attempt, counted or not, whose cost is known
    tokens: TokenCounts | None = None  #: None: not counted yet


class AttemptCounts(Contract):
    """Attempts of a run. started = stored + lost - returned + at work."""

    started: int
    lost: int  #: their lease ran out, also if they came back
    returned: int  #: of the lost, those that came back and ended
    late: int  #: ended after their trial was closed
    superseded: int  #: ended after a newer one had started
    redispatched: int  #: hand-outs that nobody claimed, so that no attempt was spent

    @property
    def duplicates(self) -> int:
        """Attempts that ran beside the one that counts, so that the same trial was paid for twice."""
        return self.late + self.superseded


class RunTally(Contract):
    """All of it, of one run."""

    run: Name
    attempts: AttemptCounts
    arms: tuple[ArmTally, ...]  #: in the plan's order
