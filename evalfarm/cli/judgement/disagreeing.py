"""The answers of a stored run on which labels disagree, and that nobody has decided on."""

from collections.abc import Iterator, Sequence

from evalfarm.analysis.judgement.disagreements import apart, disagreements, references, still_open
from evalfarm.contracts.judging import Disagreement, LabelledAnswer
from evalfarm.contracts.run import Trace
from evalfarm.contracts.verdict import Result
from evalfarm.judgings import Judgings
from evalfarm.store import Store


def open_disagreements(store: Store, run: str, labelled: Sequence[LabelledAnswer] = ()) -> tuple[Disagreement, ...]:
    """Rules against judge, and either against people's labels; `labelled` are those of files.

    Without such labels only the traces of answers on which rules and judge differ are read: what people decided is
    open no more.
    """
    plan = store.get_plan(run)
    if not (plan.judges or labelled):
        return ()  # by rules alone nothing disagrees
    decisions = Judgings(store.objects).adjudications(plan.suite.suite)
    answered = _answered(store, run, everything=bool(labelled))
    return still_open(disagreements(plan, answered, references(labelled, decisions)), decisions)


def _answered(store: Store, run: str, *, everything: bool) -> Iterator[tuple[Result, Trace]]:
    for result in store.results(run):
        wanted = apart(result) or (everything and bool(result.labels))
        if wanted and result.attempt in store.attempts_of(run, result.trial.index):
            trace = store.get_trace(run, result.trial.index, result.attempt)
            if trace.answer:
                yield result, trace
