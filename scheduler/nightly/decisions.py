"""What becomes of a due time, and which nights a later one is held against. Pure: the time comes in by argument."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from evalfarm.analysis.judgement.gate import Gate, GatedArm
from evalfarm.contracts.schedule import Night, NightEnd, NightVerdict, Receiver, Schedule, Telling, Told
from evalfarm.contracts.verdict import RunSummary
from scheduler.nightly.calendar import Due, dues, next_due

#: Seconds after which a night that nobody fired counts as missed: ten looks that never came.
ON_TIME_S = 300.0
#: Seconds for which a night that infrastructure keeps from starting is tried again.
START_PATIENCE_S = 3_600.0
#: Seconds after a night began for which its confirm run is tried to be started: until the next one, as a rule.
CONFIRM_PATIENCE_S = 72_000.0
#: Missed nights that are written down one by one after a long absence; what lies before them is let go.
MOST_MISSED = 50
#: Times that a receiver is tried, and the seconds between two of them, or for one that was never heard of again.
MOST_TELLINGS, TELL_AGAIN_S = 3, 900.0
_MOST_CASES = 5


def decide(
    name: str, schedule: Schedule, since_s: float, known: Sequence[Night], running: str | None, now_s: float
) -> tuple[Night, ...]:
    """What becomes of every due time that nothing was decided about yet, in order.

    `since_s` is when the schedule was first seen: nothing before it is due. `known` are its nights so far; `running`
    is the run of an earlier night that has not ended. At most the last night is run; one that comes while another
    still runs is skipped, and so are all missed ones but the last.
    """
    after_s = max([since_s, *(night.due_at for night in known)])
    pending = dues(schedule.when, after_s, now_s)[-MOST_MISSED:]
    return tuple(
        _decided(name, schedule, due, running, now_s)
        if due == pending[-1]
        else _night(
            name, schedule, due, now_s, "skipped", "nobody was there to fire it, and a later one was due already"
        )
        for due in pending
    )


def _decided(name: str, schedule: Schedule, due: Due, running: str | None, now_s: float) -> Night:
    if running is not None:
        return _night(name, schedule, due, now_s, "skipped", f"run {running} of the night before still ran")
    late_s = now_s - due.at_s
    if late_s <= ON_TIME_S:
        return _night(name, schedule, due, now_s, "on time")
    if schedule.missed == "skip":
        return _night(name, schedule, due, now_s, "skipped", "nobody was there to fire it, and its schedule says skip")
    return _night(
        name, schedule, due, now_s, "late", f"nobody was there to fire it; run {late_s / 60:.0f} minutes late"
    )


def _night(name: str, schedule: Schedule, due: Due, now_s: float, decision: str, why: str = "") -> Night:
    return Night.model_validate(
        {
            "schedule": name,
            "stamp": due.stamp,
            "due_at": due.at_s,
            "decided_at": now_s,
            "decision": decision,
            "why": why,
            "next_due_at": next_due(schedule.when, due.at_s).at_s,
        }
    )


def running_of(nights: Sequence[Night], ends: Mapping[str, NightEnd]) -> str | None:
    """The run of the last night that was started and has not ended; `ends` are by stamp."""
    going = [night for night in nights if night.decision != "skipped" and night.stamp not in ends]
    return going[-1].run if going else None


def skipped(night: Night) -> NightEnd:
    """The end of a night that is not run."""
    return _end(night, "skipped", (night.why,), night.decided_at)


def not_started(night: Night, why: str, now_s: float) -> NightEnd:
    """The end of a night whose run cannot be started."""
    return _end(night, "failed", (why,), now_s)


def judged(night: Night, summary: RunSummary, gate: Gate, now_s: float) -> NightEnd:
    """The end of a night that its gate judged."""
    reasons = tuple(f"{arm.arm.name}: {'; '.join(_why(arm))}" for arm in gate.arms if arm.verdict == gate.verdict)
    return NightEnd(
        schedule=night.schedule,
        stamp=night.stamp,
        verdict=gate.verdict,
        reasons=reasons,
        accepted=_is_whole(summary, gate.rule.most_undecided) and all(_may_stand(arm, gate) for arm in gate.arms),
        baselines=gate.baselines,
        confirm=gate.confirm,
        ended_at=now_s,
    )


def _why(arm: GatedArm) -> tuple[str, ...]:
    """An arm's reasons, and the cases behind a drop: whoever is woken by it looks at these first."""
    named = [suspect.name for suspect in arm.night.suspects if suspect.named] if arm.night is not None else []
    if not named:
        return arm.reasons
    more = f" and {len(named) - _MOST_CASES} more" if len(named) > _MOST_CASES else ""
    return (*arm.reasons, f"behind it: {', '.join(named[:_MOST_CASES])}{more}")


def unjudged(
    night: Night, summary: RunSummary, most_undecided: float, why: str, *, first: bool, now_s: float
) -> NightEnd:
    """The end of a night that no gate can judge: there is nothing to hold it against (`first`), or it must not be."""
    whole = first and _is_whole(summary, most_undecided)
    return _end(night, "inconclusive", (why,), now_s).model_copy(update={"accepted": whole})


def _end(night: Night, verdict: NightVerdict, reasons: tuple[str, ...], now_s: float) -> NightEnd:
    return NightEnd(schedule=night.schedule, stamp=night.stamp, verdict=verdict, reasons=reasons, ended_at=now_s)


def _is_whole(summary: RunSummary, most_undecided: float) -> bool:
    """Whether enough of a run was decided to hold later ones against it: an outage is no baseline."""
    undecided = summary.inconclusive + summary.infra_failed + summary.not_run
    return summary.finished and undecided <= most_undecided * summary.planned


def _may_stand(arm: GatedArm, gate: Gate) -> bool:
    """Whether an arm's night may be held against later: it held, or there were only too few nights to say so."""
    if arm.verdict in ("held", "improved"):
        return True
    few = arm.night is None or arm.night.nights < gate.rule.least_nights
    return arm.verdict == "inconclusive" and few


def accepted_runs(
    schedule: Schedule, nights: Sequence[Night], ends: Mapping[str, NightEnd], before: Night
) -> tuple[str, ...]:
    """The runs that a night is held against, oldest first; `nights` are in order.

    Nights before `baseline.since` do not count, and the first since then counts whatever its verdict: it is what
    later ones are to be like.
    """
    ran = [night for night in nights if night.stamp < before.stamp and night.stamp in ends]
    ran = [night for night in ran if ends[night.stamp].verdict not in ("skipped", "failed")]
    since = schedule.baseline.since
    if since is None:
        return tuple(night.run for night in ran if ends[night.stamp].accepted)
    ran = [night for night in ran if date.fromisoformat(night.stamp[:8]) >= since]
    return tuple(night.run for place, night in enumerate(ran) if place == 0 or ends[night.stamp].accepted)


def to_tell(schedule: Schedule, receivers: Mapping[str, Receiver], end: NightEnd) -> Iterator[tuple[str, Receiver]]:
    """The receivers that a night's end is for."""
    for name in schedule.notify:
        if end.verdict in receivers[name].on:
            yield name, receivers[name]


def next_telling(receiver: str, tellings: Sequence[tuple[Telling, Told | None]], now_s: float) -> Telling | None:
    """The next attempt at telling a receiver, after those so far; None: it was told, or must wait, or was given up."""
    if not tellings:
        return Telling(receiver=receiver, attempt=1, began_at=now_s)
    last, ended = tellings[-1]
    if (ended is not None and ended.delivered) or len(tellings) >= MOST_TELLINGS:
        return None
    if now_s - last.began_at < TELL_AGAIN_S:
        return None
    return Telling(receiver=receiver, attempt=last.attempt + 1, began_at=now_s)
