"""What was concluded: labels per trace, one result per trial, one summary per run."""

from typing import Literal

from pydantic import Field

from evalfarm.contracts.base import Contract, Name
from evalfarm.contracts.figures import Bounds, Cost, Latency, LatencyMeasures, PerQuestion, RepeatSpread
from evalfarm.contracts.run import FailureKind, Manifest, Outcome, Trial

LabelValue = Literal["PASS", "FAIL", "INCONCLUSIVE"]
Verdict = Literal["passed", "failed", "inconclusive", "infra_failed", "not_run"]
VERDICTS: tuple[Verdict, ...] = ("passed", "failed", "inconclusive", "infra_failed", "not_run")

SHOWN_REPEATS = 100
"""Of a case, so many repeats at most are listed one by one in a summary; the counts are over all."""
SHOWN_REASONS = 20
"""Of a case, so many different reasons at most are told."""


class Label(Contract):
    """One grader's judgement of one trace."""

    grader: Name
    version: str
    value: LabelValue
    reasons: tuple[str, ...] = ()  #: for PASS none; otherwise what a person can act on


class Result(Contract):
    """One closed trial: its counted attempt, judged, with the figures the tables are made of.

    None in a figure: not observed (a provider that does not report, a price that is not known).
    """

    trial: Trial
    attempt: int
    outcome: Outcome
    verdict: Verdict
    labels: tuple[Label, ...] = ()
    failure: str | None = None
    failure_kind: FailureKind | None = None
    tool_calls: int | None = None
    shell_commands: int = 0
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    latency_s: float | None = None  #: the model's and the harness's own time; waiting for limits excluded
    request_latency_s: tuple[float, ...] = ()  #: of each model request that was answered, as the gateway saw it
    waited_s: float = 0.0
    cost_usd: float | None = None
    all_attempts_usd: float | None = None  #: of every attempt of the trial, counted or not
    answered_models: tuple[str, ...] = ()  #: the models that the provider says answered

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it did not pass, over all labels, or why it did not run."""
        told = tuple(reason for label in self.labels for reason in label.reasons)
        return told or ((self.failure,) if self.failure else ())


class Rate(Contract):
    """A proportion with its 95 % interval; all None where nothing was decided."""

    value: float | None
    low: float | None
    high: float | None


class FlipRate(Rate):
    """The share of cases that both passed and failed over their repeats."""

    flipped: int
    cases: int  #: with at least two decided trials
    repeats: int


class RateOfK(Contract):
    """A rate about k trials drawn from each case, over the cases that have as many decided ones."""

    k: int
    rate: Rate
    cases: int
    dropped: int  #: cases with fewer than k decided trials


class AttemptRate(Contract):
    """The pass rate of the trials that were decided by their attempt of this number; 1 is the first."""

    attempt: int
    trials: int
    rate: Rate


class Statistics(Contract):
    """What is said of a set of trials of one arm. The five counts add up to `planned`."""

    planned: int
    passed: int
    failed: int
    inconclusive: int
    infra_failed: int
    not_run: int
    pass_rate: Rate
    pass_rate_bounds: Bounds
    families: int | None  #: families that the cases come in, which are then the unit of every interval; None: none
    flip_rate: FlipRate
    disagreement: Rate  #: D, the chance that two reruns of a case disagree; compares over unequal repeats
    rarefied_flips: tuple[RateOfK, ...]  #: the flip rate that k repeats would show
    pass_hat_k: tuple[RateOfK, ...]  #: pass^k, all of k trials pass
    pass_at_k: tuple[RateOfK, ...]  #: pass@k, at least one of k trials passes
    repeat_spread: RepeatSpread
    tool_calls_per_question: float | None
    reasoning_tokens_per_question: float | None
    tool_calls: PerQuestion
    reasoning_tokens: PerQuestion
    latency_s: Latency
    latency_measures_s: LatencyMeasures
    request_latency_s: Latency  #: per model request, as the gateway saw it
    cost_usd: float | None
    cost: Cost
    pass_rate_by_attempt: tuple[AttemptRate, ...]


class CellSummary(Statistics):
    """One model × harness × variant over all its cases."""

    model: str
    harness: str
    variant: str


class SliceSummary(CellSummary):
    """One model × harness × variant over its cases with one value of a tag: some of the cases, and at least two."""

    tag: str
    tag_value: str


class GraderTally(Contract):
    """How one grader labelled the trials of a case."""

    grader: str
    passed: int
    failed: int
    inconclusive: int


class CategoryCoverage(Contract):
    """How far a run covers one category of the suite; no estimate of anything outside these cases."""

    category: str
    about: str = ""
    cases: int  #: of the category that were run; 0: nothing is known of it
    planned: int  #: trials, over all arms; the five counts add up to it
    passed: int
    failed: int
    inconclusive: int
    infra_failed: int
    not_run: int


class CaseSummary(Contract):
    """One case in one model × harness × variant."""

    case: str
    model: str
    harness: str
    variant: str
    family: str | None = None
    tags: dict[str, str] = {}
    labels: dict[Verdict, int]
    latency_s: float | None = None  #: mean over its decided trials that report it; a timeout counts with its limit
    tool_calls: float | None = None  #: likewise
    reasoning_tokens: float | None = None  #: likewise
    reasons: tuple[str, ...] = ()  #: each once, most frequent first; at most SHOWN_REASONS
    trials: tuple[int, ...] = ()  #: indices of its trials in the first SHOWN_REPEATS repeats, for `evalfarm show`
    verdicts: tuple[Verdict, ...] = ()  #: aligned with `trials`
    category: str | None = None
    by_grader: tuple[GraderTally, ...] = ()  #: in the order in which graders label


class FirstBreak(Contract):
    """The level at which a case first breaks for one model and variant, reading direct → loop → codex."""

    case: str
    model: str
    variant: str
    level: str | None  #: None: every level that ran passed every decided trial
    passed: dict[str, str] = Field(description="harness -> passed/decided, as in '3/3'")
    reason: str | None = None


class Asked(Contract):
    """What a case asks and expects, as a report tells it."""

    case: str
    turns: tuple[str, ...] = ()  #: what the harnesses with a model are asked
    expected: tuple[str, ...] = ()  #: of them, one sentence each
    call: str | None = None  #: what `direct` calls, as in `resolve(name="x")`; None: the case has no such form
    expected_of_call: tuple[str, ...] = ()


class RunSummary(Contract):
    """The one document of a run, or of rows from elsewhere, that every report is drawn from."""

    schema_version: Literal[1] = 1
    run: str
    suite: str
    label: str | None
    simulated: bool
    synthetic: bool
    isolation: str  #: `unknown` for rows from elsewhere
    finished: bool
    planned: int
    passed: int
    failed: int
    inconclusive: int
    infra_failed: int
    not_run: int
    attempts: int  #: started, counted or not
    cells: tuple[CellSummary, ...]
    slices: tuple[SliceSummary, ...]
    cases: tuple[CaseSummary, ...]
    breaks: tuple[FirstBreak, ...]
    asked: tuple[Asked, ...] = ()  #: empty: not known
    variants: dict[str, str] = {}  #: a variant of the run -> its description in the suite, where it has one
    manifest: Manifest | None  #: None: the rows were not produced by evalfarm
    notes: tuple[str, ...] = ()  #: what a reader must know of the rows, as columns that were ignored
    categories: tuple[CategoryCoverage, ...] = ()  #: those of the suite, with or without a case
    unresolved: tuple[str, ...] = ()  #: cases that a right answer handles and leaves open, as of missing data
    disputed: tuple[str, ...] = ()  #: cases whose reference reviewers disagree on
    disagreements: tuple[str, ...] = ()  #: answers (RUN/TRIAL) on which labels disagree and nobody decided, when read
    judges_usd: float | None = 0.0  #: what its judges cost, which is in no other figure; None: not known
