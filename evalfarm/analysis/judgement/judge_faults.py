"""The faults that a calibration shows, each named with the figure that shows it; and whether a judge may be relied on.

A fault is named where the figures are enough for it, not where a point estimate looks bad: an interval that lies
beyond what is tolerated, a test at 1 %.
"""

from collections.abc import Iterator, Mapping, Sequence

from evalfarm.contracts.calibration import Calibration, Share
from evalfarm.contracts.judging import JudgeIdentity
from evalfarm.errors import UsageError

TOLERATED = 0.05
"""Of wrong answers passed, of right ones failed, of requests that come to nothing, of labels that change when asked
again: below this share an error rate is no fault of the judge's."""

LEVEL = 0.01
"""Below this p, length or place is said to move the judge."""

MOST_UNDECIDED = 0.1
"""Of a calibration's answers: beyond it, what the judge left open could hide any error rate."""


def name_faults(found: Calibration) -> Calibration:
    """The calibration with its findings."""
    return found.model_copy(update={"findings": tuple(_faults(found))})


def _faults(found: Calibration) -> Iterator[str]:
    rates = found.overall
    if _beyond(rates.false_accept):
        yield f"LENIENT: passes {_told(rates.false_accept)} answers that a person failed"
    if _beyond(rates.false_reject):
        yield f"HARSH: fails {_told(rates.false_reject)} answers that a person passed"
    if found.length.p is not None and found.length.p < LEVEL and found.length.longer_passes is not None:
        chance = f"{100 * found.length.longer_passes:.0f} %"
        yield f"FAVOURS LENGTH: of two answers of equal worth that it judges apart, it passes the longer in {chance}"
    if found.pairs.p is not None and found.pairs.p < LEVEL:
        yield (
            f"FAVOURS THE {str(found.favoured_place).upper()} POSITION: the order decided "
            f"{_told(found.pairs.order_decided)} pairs, {found.pairs.first_wins} for the first"
        )
    if _beyond(found.failed):
        yield f"UNRELIABLE: gave no label for {_told(found.failed)} answers (out of reach, refused, or unusable)"
    if found.self_disagreement.low is not None and found.self_disagreement.low > TOLERATED:
        d = f"{100 * (found.self_disagreement.value or 0):.0f} %"
        yield f"UNSTEADY: labels a frozen answer otherwise in {d} of two judgings"
    if found.abstained.low is not None and found.abstained.low > MOST_UNDECIDED:
        yield f"UNDECIDED: abstains on {_told(found.abstained)} answers"
    if found.purpose == "held-out" and found.uses.versions > 1:
        yield (
            f"TUNED ON HELD-OUT LABELS? {found.uses.versions} versions of this judge were held against these labels: "
            "what was changed after looking is not held out"
        )


def identical_judge(found: Calibration, model: str, digests: Mapping[str, str]) -> bool:
    """Whether a calibration is of the judge that a run's manifest names: its model, its prompt, the run's rubrics."""
    bare = JudgeIdentity.model_validate({**found.judge.model_dump(), "rubrics": {}})
    rubrics = {key.removeprefix("rubric/"): value for key, value in digests.items() if key.startswith("rubric/")}
    return bare.digest == digests.get(f"judge/{model}") and rubrics.items() <= found.judge.rubrics.items()


def demand_calibrated(
    run: str, digests: Mapping[str, str], calibrations: Sequence[Calibration], false_accept: float
) -> tuple[Calibration, ...]:
    """The newest held-out calibration of each of a run's judges.

    `digests` are those of the run's manifest, `calibrations` newest first.
    Raises UsageError unless each shows a false acceptance of at most `false_accept` with 95 % confidence.
    """
    models = [key.removeprefix("judge/") for key in digests if key.startswith("judge/")]
    if not models:
        raise UsageError(f"run {run!r} had no judge, so none can be calibrated", "run it with --judge MODEL")
    return tuple(_demand(run, model, digests, calibrations, false_accept) for model in models)


def _demand(
    run: str, model: str, digests: Mapping[str, str], calibrations: Sequence[Calibration], false_accept: float
) -> Calibration:
    held_out = [found for found in calibrations if found.purpose == "held-out"]
    newest = next((found for found in held_out if identical_judge(found, model, digests)), None)
    calibrate = f"calibrate it: evalfarm calibrate {model} --labels HELD-OUT.jsonl"
    if newest is None:
        other = " (it was calibrated with another prompt or rubric)" if _known(held_out, model) else ""
        raise UsageError(f"the judge {model} of run {run!r} is not calibrated on held-out labels{other}", calibrate)
    rate, limit = newest.overall.false_accept, newest.false_accept_at_most
    if limit is None or limit > false_accept:
        seen = (
            "no wrong answer was judged"
            if limit is None
            else f"{_told(rate)} wrong answers passed, at most {limit:.1%}"
        )
        raise UsageError(
            f"the judge {model} of run {run!r} may pass more wrong answers than {false_accept:.1%}: {seen}",
            "label more wrong answers (59 without a false acceptance show 5 %), or mend the judge",
        )
    undecided = newest.answers - newest.disputed - newest.decided
    if undecided > MOST_UNDECIDED * (newest.answers - newest.disputed):
        raise UsageError(
            f"the judge {model} of run {run!r} left {undecided} of {newest.answers - newest.disputed} answers open",
            "what it left open could hide any error rate; " + calibrate,
        )
    if newest.uses.versions > 1:
        raise UsageError(
            f"{newest.uses.versions} versions of the judge {model} were held against the same held-out labels",
            "what was tuned after looking at them is not held out: label other answers, and calibrate on those",
        )
    return newest


def _known(calibrations: Sequence[Calibration], model: str) -> bool:
    return any(found.judge.model == model for found in calibrations)


def _beyond(rate: Share) -> bool:
    return rate.low is not None and rate.low > TOLERATED


def _told(rate: Share) -> str:
    return f"{rate.hits} of {rate.of}"
