"""Old and new labels of the same trials, side by side."""

from collections.abc import Sequence

from evalfarm.contracts.verdict import Label, Result
from evalfarm.reports.numbers import plural

MOST_TRIALS = 50  #: shown one by one; what was stored has them all


def side_by_side(old: Sequence[Result], new: Sequence[Result]) -> list[str]:
    """Which graders judged before and now, and each trial that they label otherwise. Both in the same order."""
    now = {result.trial.index: result for result in new}
    pairs = [(result, now[result.trial.index]) for result in old]
    changed = [pair for pair in pairs if _told(pair[0]) != _told(pair[1])]
    verdicts = sum(before.verdict != after.verdict for before, after in pairs)
    lines = [
        f"Regraded {plural(len(pairs), 'trial')}, by {_graders(old)} before and {_graders(new)} now:"
        f" {plural(len(changed), 'trial')} labelled otherwise, {plural(verdicts, 'verdict')} changed."
        " The run keeps what it was told."
    ]
    lines += [line for pair in changed[:MOST_TRIALS] for line in _pair(*pair)]
    if changed[MOST_TRIALS:]:
        lines.append(f"… and {plural(len(changed) - MOST_TRIALS, 'more trial')}")
    return lines


def _told(result: Result) -> tuple[str, dict[str, str]]:
    return result.verdict, {label.grader: label.value for label in result.labels}


def _graders(results: Sequence[Result]) -> str:
    named = dict.fromkeys(f"{label.grader} {label.version}" for result in results for label in result.labels)
    return ", ".join(named) or "none"


def _pair(old: Result, new: Result) -> list[str]:
    verdict = f"{old.verdict} → {new.verdict}" if old.verdict != new.verdict else f"{new.verdict} as before"
    before, after = ({label.grader: label for label in result.labels} for result in (old, new))
    lines = [f"  trial {new.trial.index} ({new.trial.case}): {verdict}"]
    for grader in dict.fromkeys((*before, *after)):
        was, now = before.get(grader), after.get(grader)
        lines.append(f"    {grader}: {_label(was)} → {_label(now)}")
        if now is not None and (was is None or was.value != now.value):
            lines += [f"      {reason}" for reason in now.reasons[:1]]
    return lines


def _label(label: Label | None) -> str:
    return "no label" if label is None else f"{label.value} ({label.version})"
