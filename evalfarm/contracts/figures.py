"""Figures of a summary that are no rates, each with what is known of its uncertainty. None: cannot be estimated."""

from evalfarm.contracts.base import Contract


class Measure(Contract):
    """A figure in its own unit with its 95 % interval. No value: cannot be estimated; no low or high: an open end."""

    value: float | None
    low: float | None
    high: float | None


class Bounds(Contract):
    """What the pass rate can at least and at most be, whatever the undecided trials would have shown."""

    worst: float | None
    best: float | None
    low: float | None  #: of the interval of the worst
    high: float | None  #: of the interval of the best


class PerQuestion(Contract):
    """A figure per question: over cases, each the mean of its decided trials. All None: nothing reported it."""

    mean: Measure
    median: Measure
    lowest: float | None  #: a case's mean
    highest: float | None
    sd: float | None  #: between cases
    cases: int  #: with a decided trial that reports the figure
    missing: int  #: decided trials that do not report it
    widest: str | None  #: the case whose trials lie furthest apart; None where no case varies
    widest_low: float | None  #: its lowest trial
    widest_high: float | None


class Latency(Contract):
    """Seconds; None: nothing to measure, or the quantile lies beyond the time limit of an attempt."""

    p50: float | None
    p95: float | None


class LatencyMeasures(Contract):
    """Seconds of the model's and the harness's own time, with intervals that may be open.

    A trial that timed out counts as longer than every other. A quantile that falls on one has no value, and a low end
    that does is the time limit.
    """

    p50: Measure
    p95: Measure
    deciles: tuple[float | None, ...]  #: the 10 %, 20 % … 90 % quantiles; empty: nothing to measure
    trials: int  #: decided, with a latency
    timeouts: int  #: among them


class RepeatSpread(Contract):
    """How far whole repeats lie apart, over the cases decided in every repeat, and whether that is rerun noise."""

    cases: int
    repeats: int
    lowest: float | None  #: pass rate of a repeat
    highest: float | None
    sd_observed: float | None
    sd_one_run: Measure  #: what rerun noise alone gives
    q: float | None  #: Cochran's Q; None: cannot be tested
    p: float | None
    more_than_noise: bool | None


class Cost(Contract):
    """US dollars of the counted attempts, and of all; None as soon as one trial's price is not known."""

    total_usd: float | None
    per_question_usd: float | None  #: over the trials that ran
    per_pass_usd: float | None  #: None too where nothing passed
    uncounted_attempts: int  #: earlier attempts of the same trials, whose cost is in `all_attempts_usd` alone
    all_attempts_usd: float | None = None  #: with the attempts that did not count
