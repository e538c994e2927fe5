"""A gate's verdict as it is kept, for those who watch: alerts, dashboards, whoever tells a team."""

from evalfarm.analysis.judgement.gate import Gate, GatedArm
from evalfarm.analysis.statistics.stats import Estimate
from evalfarm.contracts.figures import Measure
from evalfarm.contracts.gate import ArmVerdict, GateRecord, RisenFigure
from evalfarm.contracts.verdict import Rate


def gate_record(found: Gate, at: float) -> GateRecord:
    """The record of a verdict that was reached at a time, in seconds since the epoch."""
    return GateRecord(
        run=found.run.run,
        at=at,
        verdict=found.verdict,
        baselines=found.baselines,
        confirm=found.confirm,
        to_confirm=bool(found.to_confirm),
        arms=tuple(_arm(arm) for arm in found.arms),
    )


def _arm(gated: GatedArm) -> ArmVerdict:
    named = {
        "model": gated.arm.model,
        "harness": gated.arm.harness,
        "variant": gated.arm.variant,
        "verdict": gated.verdict,
        "reasons": gated.reasons,
    }
    night = gated.night
    if night is None:
        return ArmVerdict.model_validate(named)
    latency = RisenFigure(
        factor=_measure(night.figures["latency_s"].factor),
        risen="latency_s" in night.risen,
    )
    told = {"pass_rate": _measure(night.tonight), "change": _measure(night.change), "latency": latency}
    return ArmVerdict.model_validate(named | told)


def _measure(figure: Estimate | Rate) -> Measure:
    return Measure(value=figure.value, low=figure.low, high=figure.high)
