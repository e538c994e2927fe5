"""How far a judge is to be trusted: held against people's labels, one figure at a time, each with its denominator."""

from typing import Literal

from evalfarm.contracts.base import Contract, Name
from evalfarm.contracts.figures import Measure
from evalfarm.contracts.judging import Disagreement, JudgeIdentity, Place, Purpose
from evalfarm.contracts.verdict import Rate


class LabelsUse(Contract):
    """One judge held against one file of labels."""

    labels: str  #: digest of the file
    purpose: Purpose
    judge: str  #: digest of the judge's identity
    model: str
    at: float  #: seconds since the epoch


class Uses(Contract):
    """How often a file of labels was used up to now, and by how many versions of this judge."""

    times: int
    judges: int  #: different models
    versions: int  #: of this judge's model, each with another prompt or rubric


class Share(Rate):
    """A rate with its numerator and denominator, as Wilson's interval has it."""

    hits: int
    of: int


class ErrorRates(Contract):
    """Where judge and person differ, the two directions apart. Over answers that both decided."""

    name: str  #: of the slice; `all`
    answers: int  #: decided by both
    false_accept: Share  #: judge PASS, of those that a person failed
    false_reject: Share  #: judge FAIL, of those that a person passed


class LengthEffect(Contract):
    """Whether a longer answer is passed more readily than a shorter one of the same worth."""

    longer_passes: float | None  #: chance that of two answers of one label, judged apart, the passed one is longer
    p: float | None  #: of the stratified rank test, one-sided; None: within each label all were judged alike


class PairFigures(Contract):
    """Two answers to one question, one right and one wrong, each pair judged in both orders."""

    pairs: int  #: judged in both orders
    failed: int  #: not judged in both, because the judge failed
    order_decided: Share  #: of the pairs, those in which one place won whichever answer stood there
    first_wins: int  #: of those that the order decided
    p: float | None  #: exact, two-sided: the first place wins as often as the second; None: the order decided none
    right: Share  #: of the pairs that the order did not decide, those in which the right answer won


class JudgeAgreement(Contract):
    """Two judges on the same answers."""

    other: str
    answers: int
    raw: float | None
    kappa: Measure
    pass_share: float | None  #: the prevalence, by this judge's labels


class CorrectedRate(Contract):
    """A run's pass rate by this judge, and what it would be by people's labels (Rogan and Gladen)."""

    run: str
    arm: str
    judged: Share
    corrected: Measure  #: all None where the judge cannot be corrected for


class Calibration(Contract):
    """One judge against one file of labelled answers."""

    schema_version: Literal[1] = 1
    id: str
    at: float
    judge: JudgeIdentity
    judge_digest: str
    simulated: bool
    suite: Name
    suite_version: str
    labels: str  #: digest of the file
    purpose: Purpose
    uses: Uses
    answers: int  #: in the file
    disputed: int  #: among them, left out: their reference is INCONCLUSIVE
    adjudicated: int  #: among them, whose label a person changed after the file was written
    repeats: int  #: of each answer; all figures but the self-disagreement are of the first
    decided: int  #: of those not left out, labelled PASS or FAIL by the judge
    abstained: Share
    failed: Share  #: the judge could not be reached, refused, or gave nothing usable
    overall: ErrorRates
    false_accept_at_most: float | None  #: exact upper limit at 95 % confidence, one-sided
    raw_agreement: float | None
    kappa: Measure
    human_pass_share: float | None  #: the prevalence, without which kappa says little
    by_category: tuple[ErrorRates, ...]
    by_kind: tuple[ErrorRates, ...]
    by_length: tuple[ErrorRates, ...]  #: thirds by words, shortest first
    by_criterion: tuple[ErrorRates, ...]
    length: LengthEffect
    pairs: PairFigures
    self_disagreement: Rate  #: D: the chance that the judge labels a frozen answer otherwise when asked again
    other_judges: tuple[JudgeAgreement, ...] = ()
    corrected: tuple[CorrectedRate, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    findings: tuple[str, ...]  #: each fault that the figures show, named
    requests: int
    cost_usd: float | None

    @property
    def favoured_place(self) -> Place | None:
        """The place that won more often where the order decided."""
        if not self.pairs.order_decided.hits:
            return None
        return "first" if 2 * self.pairs.first_wins >= self.pairs.order_decided.hits else "second"
