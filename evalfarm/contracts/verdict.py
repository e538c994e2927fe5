"""What was concluded: labels per trace, one result per trial, one summary per run."""

from typing import Literal

from pydantic import Field

from evalfarm.contracts.base import Contract, Name
from evalfarm.contracts.run import Manifest, Outcome, Trial

LabelValue = Literal["PASS", "FAIL", "INCONCLUSIVE"]
Verdict = Literal["passed", "failed", "inconclusive", "infra_failed", "not_run"]
VERDICTS: tuple[Verdict, ...] = ("passed", "failed", "inconclusive", "infra_failed", "not_run")


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
    tool_calls: int | None = None
    shell_commands: int = 0
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    latency_s: float | None = None  #: the model's and the harness's own time; waiting for limits excluded
    waited_s: float = 0.0
    cost_usd: float | None = None
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


class Latency(Contract):
    """Seconds of the model's and the harness's own time; None: no decided trial."""

    p50: float | None
    p95: float | None


class CellSummary(Contract):
    """One model × harness × variant over all its cases. The five counts add up to `planned`."""

    model: str
    harness: str
    variant: str
    planned: int
    passed: int
    failed: int
    inconclusive: int
    infra_failed: int
    not_run: int
    pass_rate: Rate
    flip_rate: FlipRate
    tool_calls_per_question: float | None
    reasoning_tokens_per_question: float | None
    latency_s: Latency
    cost_usd: float | None


class CaseSummary(Contract):
    """One case in one model × harness × variant."""

    case: str
    model: str
    harness: str
    variant: str
    tags: dict[str, str] = {}
    labels: dict[Verdict, int]
    reasons: tuple[str, ...] = ()  #: each once, most frequent first
    trials: tuple[int, ...] = ()  #: indices of its trials, for `evalfarm show`
    verdicts: tuple[Verdict, ...] = ()  #: aligned with `trials`


class FirstBreak(Contract):
    """The level at which a case first breaks for one model and variant, reading direct → loop → codex."""

    case: str
    model: str
    variant: str
    level: str | None  #: None: every level that ran passed every decided trial
    passed: dict[str, str] = Field(description="harness -> passed/decided, as in '3/3'")
    reason: str | None = None


class RunSummary(Contract):
    """The one document of a run that every report is drawn from."""

    schema_version: Literal[1] = 1
    run: str
    suite: str
    label: str | None
    simulated: bool
    synthetic: bool
    isolation: str
    finished: bool
    planned: int
    passed: int
    failed: int
    inconclusive: int
    infra_failed: int
    not_run: int
    attempts: int  #: started, counted or not
    cells: tuple[CellSummary, ...]
    cases: tuple[CaseSummary, ...]
    breaks: tuple[FirstBreak, ...]
    manifest: Manifest
