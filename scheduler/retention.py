"""Which runs may be let go. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from evalfarm.contracts.run import Manifest
from evalfarm.contracts.schedule import Night, NightEnd

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Kept:
    """A run that was asked for and stays, and why."""

    run: str
    why: str


def older(manifests: Sequence[Manifest], age_s: float, labels: Collection[str], now_s: float) -> list[Manifest]:
    """The runs that began at least so long ago, oldest first; with labels, only those that carry one of them."""
    old = [manifest for manifest in manifests if now_s - manifest.created_at >= age_s]
    return sorted(
        (manifest for manifest in old if not labels or manifest.label in labels), key=lambda old: old.created_at
    )


def baseline_runs(nights: Sequence[Night], ends: Mapping[str, NightEnd], most_nights: int) -> frozenset[str]:
    """The runs of one schedule that its next night may be held against, with those that speak of them.

    Its last `most_nights` accepted nights, all since the first of them, and what each was held against and confirmed
    by. None accepted: all of its nights.
    """
    accepted = [night for night in nights if night.stamp in ends and ends[night.stamp].accepted]
    first = accepted[-most_nights:][0].stamp if accepted else ""
    kept = [night for night in nights if night.stamp >= first]
    told = [ends[night.stamp] for night in kept if night.stamp in ends]
    confirms = {end.confirm for end in told if end.confirm is not None}
    return frozenset(night.run for night in kept) | confirms


def held_against(
    manifests: Sequence[Manifest], verdicts: Mapping[str, Collection[str]], asked: Collection[str]
) -> frozenset[str]:
    """The runs that a gate's last verdict on a run was held against, as long as somebody may ask for it again.

    `verdicts` are these baselines, by the run that was judged. It may be asked for of the runs that are not `asked` to
    go, and of the last run of each suite and queue that was judged, however old that is.
    """
    judged = sorted((one for one in manifests if one.run in verdicts), key=lambda one: one.created_at)
    last = {(one.suite, one.queue): one.run for one in judged}
    speaking = {one.run for one in judged if one.run not in asked} | set(last.values())
    return frozenset(run for one in speaking for run in verdicts[one])


def sorted_out(
    asked: Sequence[Manifest], protected: Mapping[str, str], kept: Collection[str], unfinished: Collection[str]
) -> tuple[list[str], list[Kept]]:
    """The runs to let go, and those that stay: one that has not ended, a protected one, one that was named to be kept.

    `protected` says why, by the run.
    """
    going, staying = [], []
    for manifest in asked:
        if manifest.run in unfinished:
            staying.append(Kept(manifest.run, "it has not ended"))
        elif manifest.run in protected:
            staying.append(Kept(manifest.run, protected[manifest.run]))
        elif manifest.run in kept or manifest.label in kept:
            staying.append(Kept(manifest.run, "it was named to be kept"))
        else:
            going.append(manifest.run)
    return going, staying
