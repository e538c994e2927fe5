"""A run's pass rates by its judge, corrected for the judge's error rates that a calibration measured."""

from collections.abc import Iterable

from evalfarm.analysis.arm_name import ArmName
from evalfarm.analysis.judgement.calibration import share
from evalfarm.analysis.statistics.judges import Labelled, rogan_gladen
from evalfarm.contracts.calibration import CorrectedRate, ErrorRates
from evalfarm.contracts.figures import Measure
from evalfarm.contracts.judging import JUDGE
from evalfarm.contracts.verdict import Result
from evalfarm.errors import UsageError

_NOT_KNOWN = Measure(value=None, low=None, high=None)


def corrected_rates(run: str, results: Iterable[Result], rates: ErrorRates, grader: str) -> tuple[CorrectedRate, ...]:
    """The pass rate of each arm by a grader's label, and by people's as far as its error rates tell.

    Over the answers that it decided. The corrected one is not known where the judge hardly tells right from
    wrong (`rogan_gladen`). Raises UsageError for a run without such a label.
    """
    told: dict[ArmName, list[str]] = {}
    for result in results:
        arm = ArmName(result.trial.arm.model, result.trial.arm.harness, result.trial.arm.variant)
        values = [label.value for label in result.labels if label.grader == grader and label.value != "INCONCLUSIVE"]
        if values:
            told.setdefault(arm, []).extend(values)
    if not told:
        hint = "run it with --judge MODEL" if grader == JUDGE else "give its cases `facts`"
        raise UsageError(f"no answer of run {run!r} has a label of the grader {grader!r}", hint)
    return tuple(_corrected(run, arm, values.count("PASS"), len(values), rates) for arm, values in told.items())


def _corrected(run: str, arm: ArmName, passed: int, of: int, rates: ErrorRates) -> CorrectedRate:
    accept, reject = rates.false_accept, rates.false_reject
    kept, caught = Labelled(reject.of - reject.hits, reject.of), Labelled(accept.of - accept.hits, accept.of)
    try:
        estimate = rogan_gladen(Labelled(passed, of), kept, caught)
    except UsageError:
        return CorrectedRate(run=run, arm=str(arm), judged=share(passed, of), corrected=_NOT_KNOWN)
    corrected = Measure(value=estimate.value, low=estimate.low, high=estimate.high)
    return CorrectedRate(run=run, arm=str(arm), judged=share(passed, of), corrected=corrected)
