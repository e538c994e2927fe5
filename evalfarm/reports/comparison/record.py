"""The whole-run record of a comparison: what each run tested, and whether its plan was carried out."""

from collections.abc import Iterator, Sequence

from evalfarm.analysis.judgement.notes import RunNote
from evalfarm.analysis.judgement.record import CaseLabels, RunRecord
from evalfarm.reports.comparison.blocks import Block, Listed
from evalfarm.reports.comparison.parts import some
from evalfarm.reports.numbers import plural
from evalfarm.reports.run.label_findings import word
from evalfarm.reports.table import Table

MOST_ROWS = 30  #: of cases with a label that is no PASS; the JSON document has them all
_DIGITS = 12


def whole_run(runs: Sequence[RunNote]) -> Iterator[Block]:
    """What each run tested, then the labels of the cases that did not pass everywhere."""
    for note in runs:
        if note.record is not None:
            yield Listed(f"What run {note.run} is about", tuple(_lines(note.record)))
    yield from _labels([(note.run, note.record) for note in runs if note.record is not None])


def _lines(record: RunRecord) -> Iterator[str]:
    yield "Versions: " + ", ".join(f"{name} {_short(version)}" for name, version in record.versions.items())
    if record.categories:
        covered = ", ".join(f"{name} {cases}" for name, cases in record.categories.items() if cases)
        empty = [name for name, cases in record.categories.items() if not cases]
        without = f"; without a case: {', '.join(empty)}" if empty else ""
        yield f"Cases by category: {covered or 'none'}{without}. Coverage, no accuracy in production"
    parts = (plural(record.cases, "case"), plural(record.arms, "arm"), plural(record.repeats, "repeat"))
    plan = f"Repetition plan: {' × '.join(parts)}, {plural(record.planned, 'trial')}"
    yield f"{plan}, carried out in full" if record.carried_out else f"{plan}, NOT carried out in full"
    if record.not_run:
        yield f"Planned and not run: {plural(record.not_run, 'trial')}"
    if record.infra_failed:
        yield f"Run and lost to infrastructure: {plural(record.infra_failed, 'trial')}"
    yield f"Disputed references: {some(record.disputed) if record.disputed else 'none'}"
    count = plural(len(record.disagreements), "answer")
    open_ones = f"{count} ({some(record.disagreements)})" if record.disagreements else "none"
    yield f"Open disagreements between labels: {open_ones}"
    if record.unresolved:
        count = plural(len(record.unresolved), "case")
        yield f"Left open by a right answer: {count} ({some(record.unresolved)})"
    yield from (f"Unresolved gap: {reason}" for reason in record.gaps)


def _labels(records: Sequence[tuple[str, RunRecord]]) -> Iterator[Table]:
    """Case by case and grader by grader what each run's labels were, where one is no PASS."""
    by_run = [{(one.case, one.grader): one for one in record.labels} for _, record in records]
    keys = dict.fromkeys(key for found in by_run for key in found)
    graders = {grader for _, grader in keys}
    telling = [key for key in keys if any(_is_open(found.get(key)) for found in by_run)]
    if len(graders) < 2 or not telling:
        return
    rows = tuple(
        (case, word(grader), *(_told(found.get((case, grader))) for found in by_run)) for case, grader in telling
    )
    more = f"; {len(rows) - MOST_ROWS} more" if rows[MOST_ROWS:] else ""
    title = f"Labels by case, PASS / FAIL / INCONCLUSIVE, where one is no PASS{more}"
    yield Table(title, ("case", "grader", *(run for run, _ in records)), rows[:MOST_ROWS], words=2)


def _is_open(labels: CaseLabels | None) -> bool:
    return labels is not None and bool(labels.failed or labels.inconclusive)


def _told(labels: CaseLabels | None) -> str:
    return "not run" if labels is None else f"{labels.passed} / {labels.failed} / {labels.inconclusive}"


def _short(version: str) -> str:
    algorithm, colon, digits = version.partition(":")
    return digits[:_DIGITS] if colon and algorithm == "sha256" else version
